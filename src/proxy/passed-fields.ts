import { hasAccessKey } from '../core/credentials.ts'
import { fieldsOf, kindOfField, namedInConnection, withheldReason } from '../core/header-fields.ts'
import { withoutCookies } from '../http/cookies.ts'
import type { ForwardedFacts } from '../http/forwarded.ts'
import { canonicalName, type ReservedNames } from '../identity/reserved-names.ts'
import type { RequestTrace } from '../observe/trace-context.ts'
import { ByName } from '../wire/fields.ts'

export interface UpstreamHeadersInput {
  readonly fields: RequestFields
  /** Whether the upstream does not receive a cookie of the client. */
  readonly isWithheldCookie: (name: string) => boolean
  /** The cookies that the gateway keeps for the upstream, as in a `Cookie` field. */
  readonly keptCookies: string | undefined
  /** Whether the upstream does not receive `Authorization` of the client. Absent: it does. */
  readonly withholdsAuthorization?: boolean | undefined
  readonly host: string
  readonly forwarded: ForwardedFacts
  readonly requestId: string
  /** Marks the request, so that the gateway detects a loop when the request comes back. */
  readonly loopMarker: string
  /** Absent when the gateway takes part in no trace. */
  readonly trace: Pick<RequestTrace, 'traceParent' | 'state'> | undefined
}

/** How a field of a request is treated. */
type Treatment = 'withheld' | 'cookie' | 'content_length' | 'loop' | 'te' | 'passed'

/** The name of the field with the loop markers of the upstreams that a request was sent to. */
export const [loopField = ''] = fieldsOf('loop')

const authorizationLength = 'authorization'.length

/** How the fields of requests to one upstream are treated. */
export class RequestFields {
  readonly #reserved: Pick<ReservedNames, 'has'>
  readonly #isTracing: boolean
  readonly #isHttp2: boolean
  /** By the name as the client wrote it. */
  readonly treatments = new ByName((name): Treatment => this.#decide(name.toLowerCase()))

  /**
   * @param reserved the names that a client may not set
   * @param isTracing the gateway takes part in traces and sets the trace fields itself
   * @param isHttp2 the upstream speaks HTTP/2, so it may get `TE: trailers` (RFC 9113 §8.2.2)
   */
  constructor(reserved: Pick<ReservedNames, 'has'>, isTracing: boolean, isHttp2 = false) {
    this.#isHttp2 = isHttp2
    this.#isTracing = isTracing
    this.#reserved = reserved
  }

  #decide(lowerCase: string): Treatment {
    if (lowerCase === 'te' && this.#isHttp2) return 'te'
    if (withheldReason(lowerCase) !== undefined || this.#reserved.has(canonicalName(lowerCase))) return 'withheld'
    const kind = kindOfField(lowerCase)
    if (kind === 'trace' && this.#isTracing) return 'withheld'
    return kind === 'loop' || kind === 'cookie' || kind === 'content_length' ? kind : 'passed'
  }
}

/**
 * The fields for the upstream, from those of the client: names and values in turn. First the
 * gateway removes the fields that a client may not set: hop-by-hop fields, those that `Connection`
 * lists, identity and forwarding. Then it adds its own fields. The identity is added last, by the
 * transport, so no field of the client can remove it (RFC 9110 §7.6.1, RFC 9700 §4.13). Fields of
 * the same name are not joined, and keep their order.
 */
export function upstreamHeaders(received: readonly string[], input: UpstreamHeadersInput): string[] {
  const listed = namedInConnection(received)
  const fields = ['Host', input.host]
  let contentLength: string | undefined
  let keptCookies = input.keptCookies
  let loop = input.loopMarker

  for (let at = 0; at + 1 < received.length; at += 2) {
    const name = received[at] as string
    const value = received[at + 1] as string
    const treatment = input.fields.treatments.of(name)
    if (treatment === 'withheld' || (listed.size > 0 && listed.has(name.toLowerCase()))) continue
    if (treatment === 'passed') {
      const isAuthorization = name.length === authorizationLength && name.toLowerCase() === 'authorization'
      if (isAuthorization && input.withholdsAuthorization === true) continue
      // Also on public paths, where no key counts.
      if (hasAccessKey(isAuthorization ? 'authorization' : '', value)) continue
      fields.push(name, value)
    } else if (treatment === 'cookie') {
      const own = hasAccessKey('cookie', value) ? undefined : withoutWithheld(value, input.isWithheldCookie)
      const cookies = own === undefined || keptCookies === undefined ? (own ?? keptCookies) : `${own}; ${keptCookies}`
      keptCookies = undefined
      if (cookies !== undefined) fields.push(name, cookies)
    } else if (treatment === 'te') {
      if (/(?:^|[,\s])trailers(?:[,;\s]|$)/i.test(value)) fields.push('TE', 'trailers')
    } else if (treatment === 'loop') {
      loop = `${value}, ${loop}`
    } else if (contentLength === undefined) {
      // A server that reads "010" as octal takes it for 8. It would read the last two bytes as
      // another request.
      contentLength = value.replace(/^0+(?=\d)/, '')
      fields.push(name, contentLength)
    }
  }

  if (keptCookies !== undefined) fields.push('Cookie', keptCookies)
  const { forwardedFor, proto, host } = input.forwarded
  fields.push('X-Forwarded-For', forwardedFor, 'X-Forwarded-Proto', proto, 'X-Forwarded-Host', host)
  fields.push('X-Request-Id', input.requestId, 'Gatehouse-Loop', loop)
  if (input.trace !== undefined) fields.push(...traceFields(input.trace))
  return fields
}

function traceFields({ traceParent, state }: Pick<RequestTrace, 'traceParent' | 'state'>): string[] {
  return state === undefined ? ['traceparent', traceParent] : ['traceparent', traceParent, 'tracestate', state]
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
