import { singleFields } from '../../core/header-fields.ts'
import { type KnownField, KnownFields, withoutSpaceAround } from '../../wire/fields.ts'

/** A request head that has only one possible meaning. */
export interface RequestHead {
  /** The whole head as it arrived, without the empty line; a character is a byte. */
  readonly text: string
  readonly method: string
  /** The request target in origin-form (RFC 9112 §3.2.1). */
  readonly url: string
  /** Names and values in turn, in the order and case of the client; a character is a byte. */
  readonly rawHeaders: readonly string[]
  /** The values by lower-case name, as Node.js has them in `IncomingMessage.headers`. */
  readonly headers: Record<string, string | undefined>
  /** How many bytes of content follow. */
  readonly contentLength: number
  /** Whether the client wants to use the connection again. */
  readonly isKeepAlive: boolean
}

const methods = ['GET', 'POST', 'HEAD', 'PUT', 'DELETE', 'PATCH']
const lineEnd = ' HTTP/1.1'
/** Node's parser decides about such a target. */
const unusualTarget = /[^\x21-\x7e]/
const fieldName = /^[\w!#$%&'*+.^`|~-]+$/
/** Node's parser rejects a tab. */
const contentLength = /^ *\d{1,15} *$/

/**
 * What a field means for the request:
 * - `unusual`: Node's parser reads the request.
 * - `single`: Node.js ignores a second value, so a request with two is unusual.
 * - `cookie` and `list`: values are joined, with `; ` and `, `.
 */
type Meaning = 'unusual' | 'single' | 'cookie' | 'list' | 'connection' | 'content-length'

const special: ReadonlyMap<string, Meaning> = new Map<string, Meaning>([
  ...[...singleFields].map((name) => [name, 'single'] as const),
  ['connection', 'connection'],
  ['content-length', 'content-length'],
  ['cookie', 'cookie'],
  ...[
    ...['expect', 'http2-settings', 'keep-alive', 'proxy-connection', 'set-cookie', 'te', 'trailer'],
    ...['transfer-encoding', 'upgrade', '__proto__'],
  ].map((name) => [name, 'unusual'] as const),
])

interface FieldFacts {
  /** In lower case. */
  readonly name: string
  readonly meaning: Meaning
}

const knownFields = new KnownFields<FieldFacts>((written) => {
  const name = written.toLowerCase()
  return { name, meaning: fieldName.test(written) ? (special.get(name) ?? 'list') : 'unusual' }
})

/** An object without prototype; its fields are read faster than those of `{ __proto__: null }`. */
const HeadersByName = function () {} as unknown as new () => Record<string, string | undefined>
HeadersByName.prototype = Object.create(null)

/**
 * Reads a request head: the bytes before `headEnd`, which `headEndOf` has found. Returns
 * `undefined` for a head that is not plain, which is not necessarily invalid: Node's parser reads
 * it then. A plain head follows the rules of RFC 9112 §3 to §6 for senders, has one `Host`, and
 * says in one way how much content follows.
 */
export function plainRequestHead(bytes: Buffer, headEnd: number): RequestHead | undefined {
  const text = bytes.toString('latin1', 0, headEnd)
  let end = text.indexOf('\r\n')
  if (end === -1) return undefined
  const method = methods.find((each) => text.startsWith(each))
  if (method === undefined || !text.startsWith(' /', method.length)) return undefined
  if (!text.startsWith(lineEnd, end - lineEnd.length)) return undefined
  const url = text.slice(method.length + 1, end - lineEnd.length)
  if (unusualTarget.test(url)) return undefined
  const rawHeaders: string[] = []
  const headers = new HeadersByName()
  let isKeepAlive = true
  let field: KnownField<FieldFacts> | undefined
  while (end < text.length) {
    const start = end + 2
    end = text.indexOf('\r\n', start)
    if (end === -1) end = text.length
    field = knownFields.at(text, start, end, field)
    if (field === undefined) return undefined
    const valueStart = start + field.beginning.length
    const value = withoutSpaceAround(text, valueStart, end)
    const { name, meaning } = field.facts
    const earlier = headers[name]
    switch (meaning) {
      case 'unusual':
        return undefined
      case 'connection':
        if (earlier !== undefined || !/^(?:keep-alive|close)$/i.test(value)) return undefined
        isKeepAlive = value.length === 10
        headers[name] = value
        break
      case 'content-length':
        if (earlier !== undefined || !contentLength.test(text.slice(valueStart, end))) return undefined
        headers[name] = value
        break
      case 'single':
        if (earlier !== undefined) return undefined
        headers[name] = value
        break
      case 'cookie':
        headers[name] = earlier === undefined ? value : `${earlier}; ${value}`
        break
      case 'list':
        headers[name] = earlier === undefined ? value : `${earlier}, ${value}`
    }
    rawHeaders.push(field.written, value)
  }
  if (headers['host'] === undefined) return undefined
  return { text, method, url, rawHeaders, headers, contentLength: Number(headers['content-length'] ?? 0), isKeepAlive }
}
