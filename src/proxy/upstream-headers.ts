import { fieldsOf, kindOfField, namedInConnection, withheldReason } from '../core/header-fields.ts'
import { withoutCookies } from '../http/cookies.ts'
import type { ForwardedFacts } from '../http/forwarded.ts'
import { canonicalName } from '../identity/reserved-names.ts'
import type { RequestTrace } from '../observe/trace-context.ts'
import { type FieldCollector, FieldPairs, lineLength } from '../wire/field-lines.ts'
import { ByName } from '../wire/fields.ts'
import type { Addresses } from './addresses.ts'

export interface UpstreamHeadersInput {
  readonly fields: RequestFields
  /** Whether the upstream does not receive a cookie of the client. */
  readonly isWithheldCookie: (name: string) => boolean
  /** The cookies that the gateway keeps for the upstream, as in a `Cookie` field. */
  readonly keptCookies: string | undefined
  /** Whether the upstream does not receive `Authorization` of the client. Absent: it does. */
  readonly withholdsAuthorization?: boolean | undefined
  /** Changes `Accept-Encoding`, for content that the gateway has to decode. */
  readonly acceptEncoding?: ((value: string) => string) | undefined
  readonly addresses: Pick<Addresses, 'request'>
  readonly host: string
  readonly forwarded: ForwardedFacts
  readonly requestId: string
  /** Marks the request, so that the gateway detects a loop when the request comes back. */
  readonly loopMarker: string
  /** Absent when the gateway takes part in no trace. */
  readonly trace: Pick<RequestTrace, 'traceParent' | 'state'> | undefined
}

/** How a field of a request is treated. */
type Treatment =
  'withheld' | 'passed' | 'address' | 'authorization' | 'accept_encoding' | 'cookie' | 'content_length' | 'loop' | 'te'

/** Fields whose treatment depends on the request or on the upstream. */
const treatments: Readonly<Record<string, Treatment>> = {
  'accept-encoding': 'accept_encoding',
  authorization: 'authorization',
  destination: 'address',
  origin: 'address',
  referer: 'address',
}

/** The name of the field with the loop markers of the upstreams that a request was sent to. */
export const [loopField = ''] = fieldsOf('loop')

/** How the fields of requests to one upstream are treated. */
export class RequestFields {
  readonly #reserved: ReadonlySet<string>
  readonly #isHttp2: boolean
  readonly #treatments = new ByName((name) => this.#decide(name.toLowerCase()))

  /**
   * @param reserved the names that only the gateway may set, in canonical form
   * @param isTracing the gateway takes part in traces and sets the trace fields itself
   * @param isHttp2 the upstream speaks HTTP/2, so it may get `TE: trailers` (RFC 9113 §8.2.2)
   */
  constructor(reserved: ReadonlySet<string>, isTracing: boolean, isHttp2 = false) {
    this.#isHttp2 = isHttp2
    this.#reserved = isTracing ? new Set([...reserved, ...fieldsOf('trace')]) : reserved
  }

  /** @param name as the client wrote it */
  treatmentOf(name: string): Treatment {
    return this.#treatments.of(name)
  }

  #decide(lowerCase: string): Treatment {
    if (lowerCase === 'te' && this.#isHttp2) return 'te'
    if (withheldReason(lowerCase) !== undefined || this.#reserved.has(canonicalName(lowerCase))) return 'withheld'
    const kind = kindOfField(lowerCase)
    if (kind === 'loop' || kind === 'cookie' || kind === 'content_length') return kind
    return Object.hasOwn(treatments, lowerCase) ? (treatments[lowerCase] as Treatment) : 'passed'
  }
}

/**
 * Collects the fields for the upstream, from those of the client. First the gateway removes the
 * fields that a client may not set: hop-by-hop fields, those that `Connection` lists, identity and
 * forwarding. Then it adds its own fields. The identity is added last, by the transport, so no
 * field of the client can remove it (RFC 9110 §7.6.1, RFC 9700 §4.13). Fields of the same name are
 * not joined, and keep their order.
 */
export function collectUpstreamHeaders<Fields extends FieldCollector>(
  received: readonly string[],
  input: UpstreamHeadersInput,
  fields: Fields,
): Fields {
  const listed = namedInConnection(received)
  const { forwardedFor, proto, host } = input.forwarded
  let hasLength = false
  let keptCookies = input.keptCookies
  let loop = input.loopMarker
  let nextLine = 0
  fields.add('Host', input.host)

  for (let at = 0; at + 1 < received.length; at += 2) {
    const name = received[at] as string
    const value = received[at + 1] as string
    const line = nextLine
    nextLine += lineLength(name, value)
    const treatment = input.fields.treatmentOf(name)
    if (treatment === 'withheld' || (listed.size > 0 && listed.has(name.toLowerCase()))) continue
    let sent: string | undefined = value
    switch (treatment) {
      case 'passed':
        break
      case 'address':
        sent = input.addresses.request(name.toLowerCase(), value, host)
        break
      case 'authorization':
        if (input.withholdsAuthorization === true) sent = undefined
        break
      case 'accept_encoding':
        if (input.acceptEncoding !== undefined) sent = input.acceptEncoding(value)
        break
      case 'cookie':
        sent = withoutWithheld(value, input.isWithheldCookie)
        if (keptCookies !== undefined) sent = sent === undefined ? keptCookies : `${sent}; ${keptCookies}`
        keptCookies = undefined
        break
      case 'te':
        if (/(?:^|[,\s])trailers(?:[,;\s]|$)/i.test(value)) fields.add('TE', 'trailers')
        continue
      case 'loop':
        loop = `${value}, ${loop}`
        continue
      case 'content_length':
        // A server that reads "010" as octal takes it for 8. It would read the last two bytes as
        // another request.
        sent = hasLength ? undefined : value.replace(/^0+(?=\d)/, '')
        hasLength = true
    }
    if (sent === value) fields.keep(name, value, line)
    else if (sent !== undefined) fields.add(name, sent)
  }

  if (keptCookies !== undefined) fields.add('Cookie', keptCookies)
  fields.add('X-Forwarded-For', forwardedFor)
  fields.add('X-Forwarded-Proto', proto)
  fields.add('X-Forwarded-Host', host)
  fields.add('X-Request-Id', input.requestId)
  fields.add('Gatehouse-Loop', loop)
  if (input.trace === undefined) return fields
  fields.add('traceparent', input.trace.traceParent)
  if (input.trace.state !== undefined) fields.add('tracestate', input.trace.state)
  return fields
}

/** Names and values in turn: see {@link collectUpstreamHeaders}. */
export function upstreamHeaders(received: readonly string[], input: UpstreamHeadersInput): string[] {
  return collectUpstreamHeaders(received, input, new FieldPairs()).pairs
}

/** Returns the value unchanged when all cookies in it are passed on. */
function withoutWithheld(header: string, isWithheld: (name: string) => boolean): string | undefined {
  let found = false
  const kept = withoutCookies(header, (name) => {
    const drop = isWithheld(name)
    found ||= drop
    return drop
  })
  return found ? kept : header
}
