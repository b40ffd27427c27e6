import { isAbsolute, resolve } from 'node:path'
import {
  type Alias,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  type Pair,
  type Scalar,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml'
import { readBounded } from './files.ts'
import { below, type Report } from './report.ts'
import type { Place } from './sources.ts'
import { foreignCommentMark, reportSyntax } from './yaml-syntax.ts'

const maxFileBytes = 1024 * 1024
const maxValues = 50_000
const maxDepth = 50

/**
 * Reads a YAML file whose values belong at the pointer `root`, and notes where each of them stands.
 * @returns `undefined` when its text is wrong, which has been reported then
 */
export function readYaml(file: string, root: string, report: Report): unknown {
  const refuse = (message: string, hint?: string, line = 0, column = 0) => {
    report.errorAtPlace({ file, line, column }, root, message, hint)
    return undefined
  }
  report.looksAt(file)
  const content = readBounded(file, maxFileBytes)
  if ('why' in content) return root === '' ? refuse(...notTheFile(file, content.why)) : refuse(content.why)
  const text = decodeUtf8(content.bytes)
  if (text === undefined) return refuse('is not text in UTF-8', 'save it as UTF-8')

  report.sources.add(file, text)
  const lines = new LineCounter()
  // Duplicate keys are sought below: the parser's own search takes quadratic time.
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    uniqueKeys: false,
    resolveKnownTags: false,
  })
  const placeOf = (offset: number): Place => {
    const { line, col } = lines.linePos(offset)
    return { file, line, column: col }
  }
  const nul = text.indexOf('\0')
  if (nul >= 0) {
    const { line, column } = placeOf(nul)
    return refuse('has a NUL character here', 'remove it, or save the file as UTF-8', line, column)
  }
  if (document.directives?.yaml.version !== '1.2')
    return refuse('is written for another version of YAML', 'remove the %YAML line', 1, 1)
  if (reportSyntax(document, placeOf, root, report)) return undefined
  if (document.contents === null || isNothing(document.contents))
    return refuse('is empty', 'a configuration begins with "version: 1"')
  return new Reading(placeOf, report).all(document.contents, root)
}

/**
 * What is said when the configuration itself cannot be read: a path alone is of no help in another
 * folder than people think.
 */
function notTheFile(file: string, why: string): [message: string, hint?: string] {
  if (!why.startsWith('does not exist')) return [why]
  const message = isAbsolute(file) ? why : `${why}: it was sought as ${resolve(file)}`
  return [message, '"gatehouse init" writes one, --config names another']
}

function decodeUtf8(bytes: Buffer): string | undefined {
  try {
    // Leaves out the byte order mark that some editors put first.
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

function isNothing(node: Node): boolean {
  return isScalar(node) && node.value === null && node.source === ''
}

class TooMuch extends Error {}

/**
 * Turns nodes into plain values, without being led astray by aliases, `__proto__` or keys that
 * stand twice.
 */
class Reading {
  readonly #placeOf: (offset: number) => Place
  readonly #report: Report
  readonly #anchors = new Map<string, Node>()
  /** What is being read: an alias that leads to a part of where it stands is an endless value. */
  readonly #open = new Set<Node>()
  /** Within an alias names have been given already; giving them again would undo later ones. */
  #repeating = 0
  #values = 0

  constructor(placeOf: (offset: number) => Place, report: Report) {
    this.#placeOf = placeOf
    this.#report = report
  }

  all(contents: Node, root: string): unknown {
    const place = this.#begin(contents)
    try {
      return this.#read(contents, root, place)
    } catch (error) {
      if (!(error instanceof TooMuch)) throw error
      this.#report.errorAtPlace(place, root, error.message)
      return undefined
    }
  }

  /** `alias` is where the node is repeated, when that is what is being read. */
  #read(node: unknown, at: string, key: Place | undefined, alias?: Place): unknown {
    this.#values += 1
    if (this.#values > maxValues)
      throw new TooMuch(`has more than ${maxValues} values, counting those that aliases (*name) repeat`)
    if (at.split('/').length > maxDepth) throw new TooMuch('is nested too deeply')
    if (isAlias(node)) return this.#readAlias(node, at, key)

    const isEmpty = !isNode(node) || (isScalar(node) && node.value === null && node.source === '')
    const value = alias ?? (isEmpty && key ? key : this.#begin(node as Node))
    this.#report.add(at, { key: key ?? value, value, isList: isSeq(node), ...typedText(node) })
    if (isNode(node) && node.anchor !== undefined && this.#repeating === 0) this.#anchors.set(node.anchor, node)
    if (isScalar(node)) return this.#scalarValue(node, at)
    return isMap(node) || isSeq(node) ? this.#readCollection(node, at) : null
  }

  #scalarValue({ value, type, source = '' }: Scalar, at: string): unknown {
    const mark = type === 'PLAIN' ? foreignCommentMark(source) : undefined
    if (mark !== undefined)
      this.#report.warning(
        at,
        `has "${mark}" in it, which begins no comment in YAML: all of it is the value`,
        'begin the comment with "#", or put the value in quotes',
      )
    return value
  }

  #readCollection(node: YAMLMap | YAMLSeq, at: string): object {
    this.#open.add(node)
    const value = isMap(node)
      ? this.#readMap(node, at)
      : node.items.map((item, index) => this.#read(item, below(at, index), undefined))
    this.#open.delete(node)
    return value
  }

  #readAlias(node: Alias, at: string, key: Place | undefined): unknown {
    const target = this.#anchors.get(node.source)
    const place = this.#begin(node)
    if (target === undefined || this.#open.has(target)) {
      this.#report.add(at, { key: key ?? place, value: place, isList: false })
      const why = target ? `*${node.source} stands within itself` : `nothing before this place is named &${node.source}`
      this.#report.error(at, why, 'put the value in quotes if it just begins with "*"')
      return undefined
    }
    this.#repeating += 1
    const value = this.#read(target, at, key ?? place, place)
    this.#repeating -= 1
    return value
  }

  #readMap(map: YAMLMap, at: string): object {
    const values = new Map<string, unknown>()
    for (const pair of map.items) {
      const place = this.#keyPlace(pair, map)
      const name = nameOf(pair.key)
      if (name === undefined) {
        const isNone = pair.key === null || (isScalar(pair.key) && pair.key.value === null)
        this.#report.errorAtPlace(place, at, isNone ? 'a key is missing before ":"' : 'a key must be plain text')
      } else if (/^\/(?:\/|\*\s)/.test(name) && isScalar(pair.key) && pair.key.type === 'PLAIN') {
        this.#report.errorAtPlace(place, at, 'this is no comment in YAML', 'a comment begins with "#"')
      } else if (name === '__proto__') {
        this.#report.errorAtPlace(place, below(at, name), 'cannot be the name of anything')
      } else if (this.#report.wasWritten(below(at, name))) {
        const first = this.#report.keyPlace(below(at, name))
        const where = first.file === place.file ? `line ${first.line}` : `${first.file}:${first.line}`
        this.#report.errorAtPlace(place, below(at, name), 'stands here a second time', `the first one is in ${where}`)
      } else {
        values.set(name, this.#read(pair.value, below(at, name), place))
      }
    }
    return Object.fromEntries(values)
  }

  #keyPlace(pair: Pair, map: YAMLMap): Place {
    const key = pair.key as Node | null
    return key?.range ? this.#begin(key) : this.#begin(map)
  }

  #begin(node: Node): Place {
    return this.#placeOf(node.range?.[0] ?? 0)
  }
}

function nameOf(key: unknown): string | undefined {
  if (!isScalar(key) || key.value === null) return undefined
  return typeof key.value === 'string' ? key.value : (key.source ?? String(key.value))
}

function typedText(node: unknown): { typed?: string } {
  if (!isScalar(node) || typeof node.value === 'string') return {}
  const { source } = node as Scalar
  return source === undefined || source === '' ? {} : { typed: source }
}
