import { printable } from '../../core/printable.ts'

/** A place in a file: line and column from 1; line 0 stands for the file as a whole. */
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

/**
 * A line of a file for a person to look at, and how many characters stand before the one that is
 * meant.
 */
export interface Quote {
  readonly text: string
  readonly before: number
}

/** No more of a line is shown, in characters. */
const widest = 140
/** So many of them stand before the place that is meant. */
const before = 60

/** The texts that were read, so that a diagnostic can show the line it is about. */
export class Sources {
  readonly #lines = new Map<string, readonly string[]>()

  add(file: string, text: string): void {
    this.#lines.set(file, text.split(/\r\n|\n|\r/))
  }

  /** The line at a place as it was read: not to be shown, because a secret may stand in it. */
  line({ file, line }: Place): string | undefined {
    return this.#lines.get(file)?.[line - 1]
  }

  /**
   * The line at a place without what may be a secret: `about` is the setting that it is quoted for,
   * with what is said of it. `undefined` when there is nothing to show.
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
  const start = text.length <= widest || at < before ? 0 : at - before
  const end = start + widest
  const [cutBefore, cutAfter] = [start > 0 ? '…' : '', end < text.length ? '…' : '']
  return { text: cutBefore + text.slice(start, end) + cutAfter, before: at - start + cutBefore.length }
}

const secretName =
  /secret|pass(?:wd|word|phrase)?(?![a-z])|pwd|credential|\bsession\.keys\b|^tracing\.headers\b|^admin\.page\b.*\btoken/i
const secretSetting = /(?:secret|pass(?:wd|word|phrase)?(?![a-z])|pwd|credential)[\w-]{0,64}["']?\s{0,64}:\s*/gi
const adminToken = /\btoken["']?\s{0,64}:\s*/gi
/**
 * Whatever a header for a collector is called, its value is a secret; several can stand in one
 * line.
 */
const collectorHeaders = /\bheaders?["']?\s{0,64}:\s*/gi
/** Where a secret is to be found, which is none itself. */
const reference = /^(?:[{[]\s*)*["']?(?:env|file)["']?\s*:/

/** People do write secrets into the file, and the mistake is then in that very line. */
function withoutSecrets(line: string, at: number, about: string): string {
  const text = line.replaceAll(/(\w:\/\/)[^/\s@]*@/g, '$1…@')
  const others = about.startsWith('tracing') ? collectorHeaders : about.startsWith('admin') ? adminToken : undefined
  const places = [...text.matchAll(secretSetting), ...(others === undefined ? [] : text.matchAll(others))]
  const settings = places.map((found) => found.index + found[0].length).toSorted((a, b) => a - b)
  const told = settings.find((end) => !isHarmless(text.slice(end)))
  if (told !== undefined) return `${text.slice(0, told)}…`
  if (settings.length > 0 || !secretName.test(about)) return text
  const value = text.slice(at).search(/(?<=:\s+)\S/)
  const start = value < 0 ? at : at + value
  return isHarmless(text.slice(start)) || isHarmless(text.trimStart().replace(/^-\s+/, ''))
    ? text
    : `${text.slice(0, start)}…`
}

function isHarmless(value: string): boolean {
  return value === '' || value.startsWith('#') || reference.test(value)
}
