import type { TextStream } from '../http/address-text.ts'
import type { RawFields } from '../transport/transport.ts'
import type { ResponseChanges } from './client-response.ts'

/** The line of the notice in the pages of an upstream that has `session_notice`. */
export interface SessionNotice {
  readonly line: string
  /** The changes of the header fields, which may set another Content-Security-Policy. */
  readonly changes: ResponseChanges | undefined
  /** The page is `https:`. */
  readonly isSecure: boolean
}

/** The value of a field, joined if it is repeated (RFC 9110 §5.3); empty when it is absent. */
export function fieldValue(fields: RawFields, lowerCase: string): string {
  const values: string[] = []
  for (let at = 0; at + 1 < fields.length; at += 2)
    if (fields[at]?.length === lowerCase.length && fields[at]?.toLowerCase() === lowerCase)
      values.push(fields[at + 1] ?? '')
  return values.join(', ')
}

/** Whether browsers show the content as an HTML page, and do not save it as a file. */
export function isHtmlPage(fields: RawFields): boolean {
  return (
    /^\s*text\/html\s*(?:;|$)/i.test(fieldValue(fields, 'content-type')) &&
    !/^\s*attachment\b/i.test(fieldValue(fields, 'content-disposition'))
  )
}

/**
 * Whether a Content-Security-Policy of the response lets the page load scripts of its own origin
 * and connect to it. A source that names a host counts as another origin.
 */
export function allowsNotice(fields: RawFields, { changes, isSecure }: SessionNotice): boolean {
  const received = changes?.removed.has(policyField) ? [] : policiesIn(fields)
  const policies = [...received, ...policiesIn(changes?.added ?? [])]
  return policies.every((policy) => {
    const directives = directivesOf(policy)
    const sandbox = directives.get('sandbox')
    const own = ["'self'", '*', 'http:', ...(isSecure ? ['https:'] : [])]
    const allows = (...names: readonly string[]) => {
      const sources = names.map((name) => directives.get(name)).find((found) => found !== undefined)
      // With 'strict-dynamic', only a nonce or a hash allows a script (CSP3 §8.2).
      return (
        sources === undefined ||
        (sources.some((source) => own.includes(source)) && !sources.includes("'strict-dynamic'"))
      )
    }
    return (
      allows('script-src-elem', 'script-src', 'default-src') &&
      allows('connect-src', 'default-src') &&
      (sandbox === undefined || (sandbox.includes('allow-scripts') && sandbox.includes('allow-same-origin')))
    )
  })
}

const policyField = 'content-security-policy'

function policiesIn(fields: RawFields): readonly string[] {
  return fields.flatMap((name, at) =>
    at % 2 === 0 && name.toLowerCase() === policyField ? (fields[at + 1] ?? '').split(',') : [],
  )
}

/** The sources by directive, in lower case. The first directive of a name counts (CSP3 §2.2.1). */
function directivesOf(policy: string): ReadonlyMap<string, readonly string[]> {
  const directives = new Map<string, readonly string[]>()
  for (const directive of policy.toLowerCase().split(';')) {
    const [name = '', ...sources] = directive.trim().split(/\s+/)
    if (!directives.has(name)) directives.set(name, sources)
  }
  return directives
}

/** How much may stand before the place of the line, in bytes. */
const maxBeginningBytes = 16 * 1024

/** A byte order mark, spaces, comments, and what parsers take for a comment (HTML §13.2.5.6). */
const blank = /\xef\xbb\xbf|[\t\n\f\r ]+|<!--(?:-?>|[^]*?--!?>)|<\?[^>]*>/y

/** How a document begins. Each may be absent; the first that is there shows that it is one. */
const documentTokens: readonly RegExp[] = [/<!doctype\s[^>]*>/iy, tagPattern('html'), tagPattern('head')]

/** A text that later parts may turn into one of these tokens. */
const unfinished = /^(?:|\xef\xbb?|<(?:!(?:-(?:-[^]*)?|d[^>]*)?|\?[^>]*|h[^>]*(?:["'][^]*)?)?)?$/i

function tagPattern(name: string): RegExp {
  return new RegExp(`<${name}(?:[\\s/](?:"[^"]*"|'[^']*'|[^"'>])*)?>`, 'iy')
}

/**
 * Adds a line to the head of an HTML document that arrives in parts: behind its `<head>`, or where
 * that begins if the tag is omitted (HTML §13.1.2.4). Content that begins otherwise is a fragment
 * for a script, and stays unchanged. There the line precedes a `<base>`, which would change its
 * address. A character of the text is a byte.
 */
export class LineInHead implements TextStream {
  readonly #line: string
  /** What has not been passed on; `undefined` after the place of the line. */
  #beginning: string | undefined = ''
  /** Where the line belongs, according to the tokens so far. */
  #at = 0
  /** The tokens that may follow, in the order of a document. */
  #expected: readonly RegExp[] = documentTokens

  constructor(line: string) {
    this.#line = line
  }

  next(part: string): string {
    if (this.#beginning === undefined) return part
    this.#beginning += part
    return this.#needsMore() && this.#beginning.length <= maxBeginningBytes ? '' : this.end()
  }

  /** Passes on the beginning, with the line if it is that of a document. */
  end(): string {
    const text = this.#beginning
    if (text === undefined) return ''
    this.#beginning = undefined
    const isDocument = this.#expected.length < documentTokens.length
    return isDocument ? text.slice(0, this.#at) + this.#line + text.slice(this.#at) : text
  }

  /** Whether the text ends before it shows the place of the line. */
  #needsMore(): boolean {
    const text = this.#beginning ?? ''
    let after = this.#at
    while (this.#expected.length > 0) {
      const afterBlank = endOf(blank, text, after)
      if (afterBlank !== undefined) {
        after = afterBlank
        continue
      }
      const found = this.#expected.findIndex((pattern) => endOf(pattern, text, after) !== undefined)
      if (found < 0) return unfinished.test(text.slice(after))
      this.#at = after = endOf(this.#expected[found] as RegExp, text, after) as number
      this.#expected = this.#expected.slice(found + 1)
    }
    return false
  }
}

function endOf(pattern: RegExp, text: string, at: number): number | undefined {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : undefined
}
