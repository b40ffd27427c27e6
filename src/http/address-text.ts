/** An origin as an application writes it, and the origin that clients use. */
export interface AddressPair {
  /** Such as `http://intranet:8080`. */
  readonly from: string
  readonly to: string
  /** Paths below `base` become paths below `publicBase`. Both without the slash at the end. */
  readonly base: string
  readonly publicBase: string
}

/** How an address is written: as it is, in JSON, or in a query. */
interface Style {
  readonly colon: string
  readonly slash: string
  /** What may stand before an address without a scheme. */
  readonly before: string
  /** What ends the authority of an address. */
  readonly end: string
  readonly at: string
}

const inText = { end: `[/?#\\s"'<>\\\\]`, at: '@' } as const

const styles: readonly Style[] = [
  { colon: ':', slash: '/', before: `["'(=\\s,]`, ...inText },
  { colon: ':', slash: '\\/', before: `["'(=\\s,]`, ...inText },
  { colon: ':', slash: '\\u002F', before: `["'(=\\s,]`, ...inText },
  { colon: '%3A', slash: '%2F', before: `["'=&;]`, end: `[\\s"'<>&;]|%2F|%3F|%23`, at: '(?:@|%40)' },
]

/**
 * How many characters of user info after a host are recognized: `http://intranet:8080@evil.example`
 * is an address of `evil.example` (RFC 3986 §3.2.1).
 */
const maxUserInfo = 256

/**
 * Finds the absolute addresses of an application in text, and replaces them. A character of the
 * text is a byte, so the text may have any charset in which ASCII characters are single bytes.
 */
export class AddressText {
  /** The longest address in any style, with the characters that decide where it ends. */
  readonly maxLength: number
  readonly #pattern: RegExp
  readonly #pairs = new Map<string, AddressPair>()
  readonly #scheme: string

  /** @param scheme the scheme of an address that has none (`//host`), such as `http:` */
  constructor(pairs: readonly AddressPair[], scheme: string) {
    const hosts = new Set<string>()
    for (const pair of pairs)
      for (const origin of spellings(pair.from)) {
        this.#pairs.set(origin, pair)
        hosts.add(origin.replace(/^https?:\/\//, ''))
      }
    this.#scheme = scheme
    const bases = [...new Set(pairs.map(({ base }) => base))]
    this.#pattern = new RegExp(styles.map((style) => patternOf(style, [...hosts], bases)).join('|'), 'gi')
    const longest = Math.max(...[...hosts, ...bases].map(({ length }) => length))
    // A host and a base follow each other. A style may write one character as six (`\u002F`). The
    // scheme and the characters around the address take less than 64.
    this.maxLength = 6 * 2 * longest + 64 + maxUserInfo
  }

  /**
   * Replaces the addresses that begin at or after `from` and before `limit`.
   * @returns the text from `from` on, and the place after it. That place is `limit`, or the end of
   * an address that ends after it.
   */
  replace(text: string, from: number, limit: number): { readonly replaced: string; readonly end: number } {
    let replaced = ''
    let end = from
    this.#pattern.lastIndex = from
    for (
      let match = this.#pattern.exec(text);
      match !== null && match.index < limit;
      match = this.#pattern.exec(text)
    ) {
      replaced += text.slice(end, match.index) + this.#publicAddress(match)
      end = match.index + match[0].length
    }
    const upTo = Math.max(end, limit)
    return { replaced: replaced + text.slice(end, upTo), end: upTo }
  }

  /** How many addresses of the application a text has. */
  count(text: string): number {
    return [...text.matchAll(this.#pattern)].filter((match) => this.#publicAddress(match) !== match[0]).length
  }

  #publicAddress(match: RegExpExecArray): string {
    const [whole, ...groups] = match
    // Each style has three groups: scheme, host and base.
    const at = groups.findIndex((group, index) => index % 3 === 1 && group !== undefined) - 1
    const [scheme, host = '', base = ''] = groups.slice(at, at + 3)
    const { colon, slash } = styles[at / 3] as Style
    const plain = (text: string) =>
      text
        .replaceAll(/%3A/gi, ':')
        .replaceAll(/%2F|\\\/|\\u002F/gi, '/')
        .toLowerCase()
    const pair = this.#pairs.get(`${scheme === undefined ? this.#scheme : `${scheme.toLowerCase()}:`}//${plain(host)}`)
    if (pair === undefined || plain(base) !== pair.base.toLowerCase()) return whole
    const written = (scheme === undefined ? pair.to.replace(/^https?:/, '') : pair.to) + pair.publicBase
    return written.replaceAll(':', colon).replaceAll('/', slash)
  }
}

/** How many characters before an address the pattern looks at: an escape such as `%22`. */
const lookedBehind = 3

/** Changes a text that arrives in parts, as if it were whole. */
export interface TextStream {
  /** Takes the next part, and returns what no later part can change any more. */
  next(part: string): string
  /** Returns the rest. */
  end(): string
}

/** Replaces the addresses in a text that arrives in parts. */
export class AddressStream implements TextStream {
  readonly #addresses: AddressText
  /** Characters that were passed on, because the pattern looks behind, and all that was not. */
  #text = ''
  /** Where the characters begin that were not passed on. */
  #from = 0

  constructor(addresses: AddressText) {
    this.#addresses = addresses
  }

  next(part: string): string {
    this.#text += part
    return this.#passUpTo(this.#text.length - this.#addresses.maxLength)
  }

  end(): string {
    return this.#passUpTo(this.#text.length)
  }

  #passUpTo(limit: number): string {
    if (limit <= this.#from) return ''
    const { replaced, end } = this.#addresses.replace(this.#text, this.#from, limit)
    const kept = Math.max(end - lookedBehind, 0)
    this.#text = this.#text.slice(kept)
    this.#from = end - kept
    return replaced
  }
}

/** An origin with the default port is written with and without it. */
function spellings(origin: string): readonly string[] {
  const { protocol, port } = new URL(origin)
  return port === '' ? [origin, `${origin}:${protocol === 'https:' ? 443 : 80}`] : [origin]
}

function patternOf(
  { colon, slash, before, end, at }: Style,
  hosts: readonly string[],
  bases: readonly string[],
): string {
  const write = (text: string) => escaped(text.replaceAll(':', colon).replaceAll('/', slash))
  const [c, s] = [escaped(colon), escaped(slash)]
  // A longer text comes first, because the first that matches is taken.
  const anyOf = (texts: readonly string[]) =>
    texts
      .toSorted((a, b) => b.length - a.length)
      .map(write)
      .join('|')
  const written = bases.filter((base) => base !== '')
  const base = written.length === 0 ? '()' : `((?:${anyOf(written)})(?=${s}|[?#"'<>\\s&)\\\\,;]|%3F|%23|%22|$)|)`
  return `(?:(?:(?<!\\w)|(?<=%[\\da-f]{2}))(https?)${c}|(?<=${before}))${s}${s}(${anyOf(hosts)})(?![\\w-]|\\.\\w|${c}\\d|(?:(?!${end}|${at}).){0,${maxUserInfo}}${at})${base}`
}

function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
}
