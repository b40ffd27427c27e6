import { isAbsolute, resolve } from 'node:path'
import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  type Scalar,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml'
import type { Steps } from '../../core/steps.ts'
import type { Place } from './diagnostics.ts'
import { type FileFault, readBounded } from './files.ts'
import { programOf } from './foreign-files.ts'
import type { Setting } from './report.ts'
import { templateFault } from './spellings.ts'
import { foreignCommentMark, reportSyntax } from './yaml-syntax.ts'

const maxFileBytes = 1024 * 1024
const maxValues = 50_000
const maxDepth = 50

/**
 * Reads a YAML file whose values belong at the pointer `root`, and records the place of each value.
 * @param given the text, instead of that of a file
 * @returns `undefined` when the file cannot be read or is not valid YAML, which has been reported
 */
export function* readYaml(file: string, root: Setting, given?: string): Steps<object | undefined> {
  const refuse = (message: string, hint?: string, line = 0, column = 0) => {
    root.errorAtPlace({ file, line, column }, message, hint)
    return undefined
  }
  const { report } = root
  const isIncluded = root.pointer !== ''
  if (given === undefined) report.recordFile(file)
  const content = given === undefined ? readBounded(file, maxFileBytes) : { bytes: Buffer.from(given) }
  if ('why' in content) return isIncluded ? refuse(content.why) : refuse(...explainUnreadable(file, content))
  const text = decodeUtf8(content.bytes)
  if (text === undefined) return refuse('is not text in UTF-8', 'save it as UTF-8')

  const lines = new LineCounter()
  // `YamlReader` finds duplicate keys, because the parser's own search takes quadratic time.
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    uniqueKeys: false,
    resolveKnownTags: false,
  })
  yield
  const placeOf = (offset: number): Place => {
    const { line, col } = lines.linePos(offset)
    return { file, line, column: col }
  }
  const isKnown = isConfiguration(document, text, isIncluded)
  if (isKnown) report.sources.add(file, text)
  const nul = text.indexOf('\0')
  if (nul >= 0) {
    const { line, column } = placeOf(nul)
    return refuse('has a NUL character here', 'remove it, or save the file as UTF-8', line, column)
  }
  if (document.directives?.yaml.version !== '1.2')
    return refuse('is written for another version of YAML', 'remove the %YAML line', 1, 1)
  if (document.errors.length === 0 && isEmptyNode(document.contents))
    return refuse('is empty', 'a configuration begins with "version: 1"')
  if (!isKnown) return refuse(...explainUnknown(text, isIncluded))
  if (reportSyntax(document, placeOf, root) || document.contents === null) return undefined
  return new YamlReader(placeOf).all(document.contents, root)
}

/**
 * The message for a configuration that cannot be read. If the file is missing, it has the full
 * path, because people may be in another folder than they think.
 */
function explainUnreadable(file: string, { why, isMissing }: FileFault): [message: string, hint?: string] {
  if (isMissing !== true) return [why]
  const message = isAbsolute(file) ? why : `${why}: the full path is ${resolve(file)}`
  return [message, 'create one with "gatehouse init", or name another with --config']
}

/** The message for a file that may be one of secrets: it has nothing of its content. */
function explainUnknown(text: string, isIncluded: boolean): [message: string, hint: string] {
  const program = programOf(text)
  if (program !== undefined)
    return [
      `looks like a configuration of ${program}, so nothing of it is shown`,
      `translate it: gatehouse import ${program} FILE`,
    ]
  if (/^apiVersion:/m.test(text) && /^kind:/m.test(text))
    return [
      'is a Kubernetes object, so nothing of it is shown',
      'the configuration is the text below data: mount the ConfigMap, and name the file that appears',
    ]
  return !isIncluded
    ? ['is not a configuration, so nothing of it is shown', 'a configuration begins with "version: 1"']
    : [
        'contains no upstream, so nothing of it is shown',
        'write NAME: { url: http://… }, or remove the file from include',
      ]
}

function decodeUtf8(bytes: Buffer): string | undefined {
  try {
    // The decoder removes the byte order mark that some editors write.
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

function isEmptyNode(node: unknown): boolean {
  return node === null || (isScalar(node) && node.value === null && node.source === '')
}

class DocumentTooLarge extends Error {}

/** Turns nodes into plain values. Rejects endless aliases, `__proto__` and duplicate keys. */
class YamlReader {
  readonly #placeOf: (offset: number) => Place
  readonly #anchors = new Map<string, Node>()
  /** The nodes that contain the current one. An alias to one of them would be an endless value. */
  readonly #ancestors = new Set<Node>()
  /**
   * How many aliases are being expanded. Anchors are not recorded within an alias, because that
   * would overwrite later ones.
   */
  #aliasDepth = 0
  #values = 0

  constructor(placeOf: (offset: number) => Place) {
    this.#placeOf = placeOf
  }

  all(contents: Node, root: Setting): object | undefined {
    const place = this.#startOf(contents)
    try {
      return this.#read(contents, root, place) as object
    } catch (error) {
      if (!(error instanceof DocumentTooLarge)) throw error
      root.errorAtPlace(place, error.message)
      return undefined
    }
  }

  /** `alias` is the place of the alias when the node is read through one. */
  #read(node: unknown, at: Setting, key: Place | undefined, alias?: Place): unknown {
    this.#values += 1
    if (this.#values > maxValues)
      throw new DocumentTooLarge(`has more than ${maxValues} values, counting those that aliases (*name) repeat`)
    if (at.pointer.split('/').length > maxDepth) throw new DocumentTooLarge('is nested too deeply')
    if (isAlias(node)) return this.#readAlias(node, at, key)

    const isEmpty = !isNode(node) || (isScalar(node) && node.value === null && node.source === '')
    const value = alias ?? (isEmpty && key ? key : this.#startOf(node as Node))
    at.addPlace({ key: key ?? value, value, isList: isSeq(node), ...typedText(node) })
    if (isNode(node) && node.anchor !== undefined && this.#aliasDepth === 0) this.#anchors.set(node.anchor, node)
    if (isScalar(node)) return this.#scalarValue(node, at)
    return isMap(node) || isSeq(node) ? this.#readCollection(node, at) : null
  }

  #scalarValue({ value, type, source = '' }: Scalar, at: Setting): unknown {
    const mark = type === 'PLAIN' ? foreignCommentMark(source) : undefined
    if (mark !== undefined)
      at.warning(
        `contains "${mark}", which does not begin a comment in YAML: the text is part of the value`,
        'begin the comment with "#", or put the value in quotes',
      )
    return value
  }

  #readCollection(node: YAMLMap | YAMLSeq, at: Setting): object {
    this.#ancestors.add(node)
    const value = isMap(node)
      ? this.#readMap(node, at)
      : node.items.map((item, index) => this.#read(item, at.below(index), undefined))
    this.#ancestors.delete(node)
    return value
  }

  #readAlias(node: Alias, at: Setting, key: Place | undefined): unknown {
    const target = this.#anchors.get(node.source)
    const place = this.#startOf(node)
    if (target === undefined || this.#ancestors.has(target)) {
      at.addPlace({ key: key ?? place, value: place, isList: false })
      const why = target
        ? `*${node.source} contains itself`
        : `"*" at the beginning refers to a value named &${node.source}, and there is none before this place`
      at.error(why, 'put the value in quotes if it begins with "*"')
      return undefined
    }
    this.#aliasDepth += 1
    const value = this.#read(target, at, key ?? place, place)
    this.#aliasDepth -= 1
    return value
  }

  #readMap(map: YAMLMap, at: Setting): object {
    const values = new Map<string, unknown>()
    for (const pair of map.items) {
      const place = this.#keyPlace(pair, map)
      const name = keyText(pair.key)
      if (name === undefined) {
        const isNone = pair.key === null || (isScalar(pair.key) && pair.key.value === null)
        if (!isNone && at.report.sources.line(place)?.includes('{{'))
          at.errorAtPlace(place, templateFault.message, templateFault.hint)
        else at.errorAtPlace(place, isNone ? 'a key is missing before ":"' : 'a key must be plain text')
      } else if (/^\/(?:\/|\*\s)/.test(name) && isScalar(pair.key) && pair.key.type === 'PLAIN') {
        at.errorAtPlace(place, 'this is not a comment in YAML', 'a comment begins with "#"')
      } else if (name === '__proto__') {
        at.below(name).errorAtPlace(place, 'is not allowed as a name')
      } else if (at.below(name).isSet) {
        const first = at.below(name).place
        const where = first.file === place.file ? `line ${first.line}` : `${first.file}:${first.line}`
        at.below(name).errorAtPlace(place, 'is set twice', `the first one is at ${where}`)
      } else {
        const value = this.#read(pair.value, at.below(name), place)
        // An alias without a target: the setting has its default, as after any other error.
        if (value !== undefined) values.set(name, value)
      }
    }
    return Object.fromEntries(values)
  }

  #keyPlace(pair: Pair, map: YAMLMap): Place {
    const key = pair.key as Node | null
    return key?.range ? this.#startOf(key) : this.#startOf(map)
  }

  #startOf(node: Node): Place {
    return this.#placeOf(node.range?.[0] ?? 0)
  }
}

function keyText(key: unknown): string | undefined {
  if (!isScalar(key) || key.value === null) return undefined
  return typeof key.value === 'string' ? key.value : (key.source ?? String(key.value))
}

function typedText(node: unknown): { typed?: string } {
  if (!isScalar(node) || typeof node.value === 'string') return {}
  const { source } = node as Scalar
  return source === undefined || source === '' ? {} : { typed: source }
}

type Mark = (value: unknown) => boolean

const isUrl: Mark = (value) => isScalar(value) && typeof value.value === 'string' && /^https?:/i.test(value.value)

/** Settings of which every configuration has at least one, and what their value looks like. */
const marks: Readonly<Record<string, Mark>> = {
  version: (value) => isScalar(value) && value.value === 1,
  external_url: isUrl,
  provider: isMap,
  providers: isMap,
  upstreams: isMap,
}

/** Settings of which every upstream has at least one. */
const marksOfUpstream: Readonly<Record<string, Mark>> = { url: isUrl, preset: isScalar, rules: isSeq, headers: isMap }

/** The same settings as text: after an error of YAML, the parser may misread all other lines. */
const lines = /^(?:external_url: *["']?https?:|(?:provider|providers|upstreams):[ \t\r]*(?:#.*)?$)/m
const linesOfUpstream = /^ +(?:url: *["']?https?:|(?:preset|rules|headers):)/m

/**
 * Whether a file is a configuration, or the upstreams of one (`isIncluded`), also if it has errors.
 * Diagnostics show nothing of any other file: it may be a file of secrets that somebody has named
 * by mistake.
 */
function isConfiguration({ contents, errors }: Document, text: string, isIncluded: boolean): boolean {
  if (errors.length > 0 && (lines.test(text) || (isIncluded && linesOfUpstream.test(text)))) return true
  if (!isMap(contents)) return false
  if (hasOne(contents, marks)) return true
  return isIncluded && contents.items.some(({ value }) => isMap(value) && hasOne(value, marksOfUpstream))
}

function hasOne(map: YAMLMap, marks: Readonly<Record<string, Mark>>): boolean {
  return map.items.some(
    ({ key, value }) =>
      isScalar(key) && typeof key.value === 'string' && Object.hasOwn(marks, key.value) && marks[key.value]?.(value),
  )
}
