import { join } from 'node:path'
import { parse } from 'yaml'
import { blocksOf, pages } from '../docs/markdown.ts'
import { kindOf, wholeFile } from '../docs/snippets.ts'

type Claims = Readonly<Record<string, unknown>> & { readonly sub: string }

export type People = ReadonlyMap<string, Claims>

/** What a page says about a request: one of the `tests` of our YAML. */
export interface Statement {
  /** Absent: nobody is signed in. */
  readonly as?: Claims
  readonly method: string
  readonly path: string
  readonly expect: string
}

/** A configuration of another program, and ours for the same rules. */
export interface Pair {
  readonly place: string
  readonly theirs: string
  /** A whole file. */
  readonly ours: string
  readonly statements: readonly Statement[]
}

/**
 * The pairs of a page in docs/migrating: a block in the language of the other program, and the next
 * block, which is YAML of ours.
 */
export function pairsOf(name: string, language: string, word = ''): Pair[] {
  const path = join('docs', 'migrating', name)
  const blocks = blocksOf(pages.find((page) => page.path === path) ?? { path, text: '' })
  return blocks.flatMap((theirs, index) => {
    const ours = blocks[index + 1]
    if (theirs.language !== language || theirs.word !== word) return []
    if (ours?.language !== 'yaml' || ours.word !== '') return []
    const file = wholeFile(kindOf(ours) ?? 'settings', ours.text)
    return [{ place: `${path}, line ${theirs.line}`, theirs: theirs.text, ours: file, statements: statementsOf(file) }]
  })
}

interface File {
  readonly upstreams: Readonly<Record<string, { readonly tests?: readonly Readonly<Record<string, unknown>>[] }>>
}

function statementsOf(file: string): Statement[] {
  const { upstreams } = parse(file) as File
  const tests = Object.values(upstreams).flatMap((upstream) => upstream.tests ?? [])
  return tests.map(({ as, expect, headers: _headers, ...request }) => {
    const [[method, path] = ['', '']] = Object.entries(request)
    return {
      ...(as !== undefined && { as: as as Claims }),
      ...{ method: method.toUpperCase(), path: String(path), expect: String(expect) },
    }
  })
}

/** The people of the statements. @throws {Error} when one person has different claims */
export function peopleOf(statements: readonly Statement[]): People {
  const people = new Map<string, Claims>()
  for (const { as } of statements) {
    if (as === undefined) continue
    const known = people.get(as.sub)
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(as))
      throw new Error(`${as.sub} has different claims in two tests`)
    people.set(as.sub, as)
  }
  return people
}
