import { printable } from '../../core/errors.ts'

/** An error or a warning about a configuration: the place, what is wrong, and what to do. */
export interface Diagnostic extends Place {
  readonly severity: 'error' | 'warning'
  /** The setting, as `upstreams.orders.rules[0].path`; empty for the whole file. */
  readonly path: string
  readonly message: string
  readonly hint?: string
}

/** `gateway.yaml:12:5  error  upstreams.orders.url: is missing`, and the hint on its own line. */
export function formatDiagnostic(diagnostic: Diagnostic): string {
  const { severity, path, message, hint } = diagnostic
  const text = `${placeText(diagnostic)}  ${severity}  ${path === '' ? '' : `${path}: `}${message}`
  return hint === undefined ? text : `${text}\n    ${hint}`
}

/** A person who reads more diagnostics than this does not see the first ones. */
const maxShown = 100

/** The diagnostics to show, errors before warnings, and a text that counts the others. */
export function limitDiagnostics(all: readonly Diagnostic[]): { shown: readonly Diagnostic[]; more?: string } {
  if (all.length <= maxShown) return { shown: all }
  const rank = ({ severity }: Diagnostic) => (severity === 'error' ? 0 : 1)
  const shown = all.toSorted((a, b) => rank(a) - rank(b)).slice(0, maxShown)
  return { shown, more: `and ${all.length - maxShown} more` }
}

/** The diagnostics as a list for the log. */
export function listDiagnostics(diagnostics: readonly Diagnostic[]): string[] {
  const { shown, more } = limitDiagnostics(diagnostics)
  return [...shown.map(formatDiagnostic), ...(more === undefined ? [] : [more])]
}

/** A place in a file: line and column from 1; line 0 is the file as a whole. */
export interface Place {
  readonly file: string
  readonly line: number
  readonly column: number
}

/** `gateway.yaml:12:5` */
export function placeText({ file, line, column }: Place): string {
  return line === 0 ? file : `${file}:${line}:${column}`
}

/** `gateway.yaml:12` */
export function lineText({ file, line }: Place): string {
  return `${file}:${line}`
}

/** A line of a file to show, and how many characters precede the place of the error. */
export interface Quote {
  readonly text: string
  readonly before: number
}

/** The longest part of a line that is shown, in characters. */
const maxQuoteLength = 140
/** How much of a cut line is shown before the place of the error, in characters. */
const maxLengthBefore = 60

/** The texts that were read, so that a diagnostic can show its line. */
export class Sources {
  readonly #lines = new Map<string, readonly string[]>()

  add(file: string, text: string): void {
    this.#lines.set(file, text.split(/\r\n|\n|\r/))
  }

  /** The line at a place. Do not show it, because it may contain a secret. */
  line({ file, line }: Place): string | undefined {
    return this.#lines.get(file)?.[line - 1]
  }

  /** The line from a place on, without what is far from it. Do not show it either. */
  textFrom(place: Place): string {
    return this.line(place)?.slice(place.column - 1, place.column + 300) ?? ''
  }

  /**
   * The line at a place without possible secrets, or `undefined` when there is nothing to show.
   * `about` is the setting with its message.
   */
  quote(place: Place, about = ''): Quote | undefined {
    const { column } = place
    const found = this.line(place)
    if (found === undefined || found.trim() === '') return undefined
    const at = Math.min(column - 1, found.length)
    return clipped(withoutSecrets(printable(found.replaceAll('\t', ' ')), at, about), at)
  }
}

function clipped(line: string, at: number): Quote {
  const text = line.trimEnd()
  const start = text.length <= maxQuoteLength || at < maxLengthBefore ? 0 : at - maxLengthBefore
  const end = start + maxQuoteLength
  const [cutBefore, cutAfter] = [start > 0 ? '…' : '', end < text.length ? '…' : '']
  return { text: cutBefore + text.slice(start, end) + cutAfter, before: at - start + cutBefore.length }
}

const secretName =
  /secret|pass(?:wd|word|phrase)?(?![a-z])|pwd|credential|\bsession\.keys\b|^tracing\.headers\b|^admin\.page\b.*\btoken/i
const secretSetting = /(?:secret|pass(?:wd|word|phrase)?(?![a-z])|pwd|credential)[\w-]{0,64}["']?\s{0,64}:\s*/gi
const adminToken = /\btoken["']?\s{0,64}:\s*/gi
const sessionKeys = /\bkeys["']?\s{0,64}:\s*/gi
/** The value of each header for a collector is a secret. A line can contain several. */
const collectorHeaders = /\bheaders?["']?\s{0,64}:\s*/gi
/**
 * A reference to a secret, or to settings, which is not a secret itself. A secret in place of the
 * name of a variable is one.
 */
const reference =
  /^(?:[{[]\s*)*["']?(?:(?:file|preset)["']?\s*:|env["']?\s*:\s*(?:["']?[A-Za-z_]\w*["']?)?\s*(?:[}\],#]|$))/
/** A client_id alone on its line, also misspelt. It is no secret (RFC 6749 §2.2). */
const clientIdLine = /^\s*(?:-\s+)?["']?(?:[a-z]+[_-])?client[_-]?id+["']?\s*:\s*["']?[^\s,"'{}[\]]+["']?\s*$/i

/** Hides secrets that somebody wrote into the file by mistake. */
function withoutSecrets(line: string, at: number, about: string): string {
  const text = line.replaceAll(/(\w:\/\/)[^/\s@]*@/g, '$1…@')
  // An error of YAML itself has no setting.
  const others = [
    ...(/^tracing/.test(about) ? [collectorHeaders] : []),
    ...(/^(?:admin| )/.test(about) ? [adminToken] : []),
    ...(/^(?:session| )/.test(about) ? [sessionKeys] : []),
  ]
  const places = [secretSetting, ...others].flatMap((name) => [...text.matchAll(name)])
  const settings = places.map((found) => found.index + found[0].length).toSorted((a, b) => a - b)
  const secret = settings.find((end) => !isHarmless(text.slice(end)))
  if (secret !== undefined) return `${text.slice(0, secret)}…`
  if (settings.length > 0 || !secretName.test(about)) return text
  // Its hint may name client_secret.
  if (clientIdLine.test(text) && !secretName.test(about.split(' ', 1)[0] ?? '')) return text
  const value = text.slice(at).search(/(?<=:\s+)\S/)
  const start = value < 0 ? at : at + value
  return isHarmless(text.slice(start)) || isHarmless(text.trimStart().replace(/^-\s+/, ''))
    ? text
    : `${text.slice(0, start)}…`
}

function isHarmless(value: string): boolean {
  return value === '' || value.startsWith('#') || reference.test(value)
}
