import { type Document, isMap, isScalar, type Pair, parseDocument, type YAMLMap } from 'yaml'
import type { FoundRename } from './document/report.ts'

/**
 * The text of a file with the present names of its settings. Comments and the order stay. Where a
 * setting keeps its map, nothing else changes. Otherwise the spaces of the file may change.
 */
export function migratedText(text: string, renames: readonly FoundRename[]): string {
  const document = parseDocument(text)
  const edits = renames.map((rename) => editFor(document, rename))
  // From the end, so that the places of the others stay.
  const inPlace = edits.filter((edit) => edit !== undefined).toSorted((a, b) => b.start - a.start)
  const edited = inPlace.reduce((all, { start, end, to }) => all.slice(0, start) + to + all.slice(end), text)
  const others = renames.filter((_, index) => edits[index] === undefined)
  if (others.length === 0) return edited
  const moving = parseDocument(edited)
  for (const rename of others) move(moving, rename)
  return moving.toString({ lineWidth: 0 })
}

interface Edit {
  readonly start: number
  readonly end: number
  readonly to: string
}

/** The edit of a setting that stays in its map; `undefined` when it moves. */
function editFor(document: Document, { from, to }: FoundRename): Edit | undefined {
  if (from.slice(0, -1).join('\n') !== to.slice(0, -1).join('\n')) return undefined
  const key = pairAt(document, from)?.key
  return isScalar(key) && key.range ? { start: key.range[0], end: key.range[1], to: to.at(-1) ?? '' } : undefined
}

/** Moves a setting with its comments into another map, and removes a map that is empty then. */
function move(document: Document, { from, to }: FoundRename): void {
  const pair = pairAt(document, from)
  if (pair === undefined) return
  for (let left = from; left.length > 0; left = left.slice(0, -1)) {
    document.deleteIn(left)
    const map = document.getIn(left.slice(0, -1))
    if (!isMap(map) || map.items.length > 0) break
    // The comment before the first setting of a map belongs to the map.
    if (isScalar(pair.key)) pair.key.commentBefore ??= map.commentBefore ?? null
  }
  if (isScalar(pair.key)) pair.key.value = to.at(-1)
  const place = to.slice(0, -1)
  if (!isMap(document.getIn(place))) document.setIn(place, document.createNode({}))
  ;(document.getIn(place) as YAMLMap).items.push(pair)
}

function pairAt(document: Document, names: readonly string[]): Pair | undefined {
  const map = document.getIn(names.slice(0, -1))
  if (!isMap(map)) return undefined
  return map.items.find(({ key }) => isScalar(key) && String(key.value) === names.at(-1))
}
