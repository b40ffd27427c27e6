import { connectionOptions, fieldsOf, kindOfField, noConnectionOptions, withheldReason } from '../core/header-fields.ts'
import { withoutCookies } from '../http/cookies.ts'
import type { ForwardedFacts } from '../http/forwarded.ts'
import { canonicalName } from '../identity/reserved-names.ts'
import type { RequestTrace } from '../observe/trace-context.ts'

export interface UpstreamHeadersInput {
  readonly fields: RequestFields
  readonly isGatewayCookie: (name: string) => boolean
  readonly host: string
  readonly forwarded: ForwardedFacts
  readonly requestId: string
  /** Says to this gateway, if the request ever comes back, that it was sent to this upstream. */
  readonly loopMarker: string
  /** Absent: the gateway takes part in no trace. */
  readonly trace: Pick<RequestTrace, 'traceParent' | 'state'> | undefined
}

/** What becomes of a field of a request: `listed` in `Connection` or not, by its name. */
type Fate = 'withheld' | 'cookie' | 'content_length' | 'loop' | 'passed'

/** So many names are remembered; honest clients use a few dozen. */
const mostNames = 1024

/** The field that names the upstreams that a request was sent to. */
export const [loopField = ''] = fieldsOf('loop')

/** What becomes of the fields of requests to one upstream. */
export class RequestFields {
  readonly #reserved: ReadonlySet<string>
  readonly #fates = new Map<string, Fate>()

  /**
   * @param reserved the names that only the gateway may set, in canonical form
   * @param isTracing the gateway takes part in traces, and says itself which
   */
  constructor(reserved: ReadonlySet<string>, isTracing: boolean) {
    this.#reserved = isTracing ? new Set([...reserved, ...fieldsOf('trace')]) : reserved
  }

  /** The fate of a field, by its name as it was written. */
  fateOf(name: string): Fate {
    const known = this.#fates.get(name)
    if (known !== undefined) return known
    const fate = this.#decide(name.toLowerCase())
    if (this.#fates.size < mostNames) this.#fates.set(name, fate)
    return fate
  }

  #decide(lowerCase: string): Fate {
    if (withheldReason(lowerCase) !== undefined || this.#reserved.has(canonicalName(lowerCase))) return 'withheld'
    const kind = kindOfField(lowerCase)
    return kind === 'loop' || kind === 'cookie' || kind === 'content_length' ? kind : 'passed'
  }
}

/**
 * The header lines for the upstream, name and value in turn, from those that came in. First
 * everything goes that the client may not say: what `Connection` names, hop-by-hop fields,
 * identity, forwarding. Only then is ours added, and behind it the identity, so that nothing the
 * client wrote can take it away (RFC 9110 §7.6.1, RFC 9700 §4.13). Lines of the same name stay
 * apart and in order.
 */
export function upstreamHeaders(received: readonly string[], input: UpstreamHeadersInput): string[] {
  const listed = namedInConnection(received)
  const lines = ['Host', input.host]
  let contentLength: string | undefined
  let loop = input.loopMarker

  for (let at = 0; at + 1 < received.length; at += 2) {
    const name = received[at] as string
    const value = received[at + 1] as string
    const fate = input.fields.fateOf(name)
    if (fate === 'withheld' || (listed.size > 0 && listed.has(name.toLowerCase()))) continue
    if (fate === 'passed') {
      lines.push(name, value)
    } else if (fate === 'cookie') {
      const cookies = withoutGatewayCookies(value, input.isGatewayCookie)
      if (cookies !== undefined) lines.push(name, cookies)
    } else if (fate === 'loop') {
      loop = `${value}, ${loop}`
    } else if (contentLength === undefined) {
      // "010" is eight to whoever takes a leading zero for octal, and what is left would be another
      // request.
      contentLength = value.replace(/^0+(?=\d)/, '')
      lines.push(name, contentLength)
    }
  }

  const { forwardedFor, proto, host } = input.forwarded
  lines.push('X-Forwarded-For', forwardedFor, 'X-Forwarded-Proto', proto, 'X-Forwarded-Host', host)
  lines.push('X-Request-Id', input.requestId, 'Gatehouse-Loop', loop)
  if (input.trace !== undefined) lines.push(...traceLines(input.trace))
  return lines
}

function traceLines({ traceParent, state }: Pick<RequestTrace, 'traceParent' | 'state'>): string[] {
  return state === undefined ? ['traceparent', traceParent] : ['traceparent', traceParent, 'tracestate', state]
}

function namedInConnection(received: readonly string[]): ReadonlySet<string> {
  let listed = noConnectionOptions
  for (let at = 0; at + 1 < received.length; at += 2) {
    const name = received[at] as string
    if (name.length === 10 && name.toLowerCase() === 'connection')
      listed = connectionOptions(received[at + 1] as string, listed)
  }
  return listed
}

/** The line as it came when no cookie in it is ours. */
function withoutGatewayCookies(header: string, isGatewayCookie: (name: string) => boolean): string | undefined {
  let found = false
  const kept = withoutCookies(header, (name) => {
    const ours = isGatewayCookie(name)
    found ||= ours
    return ours
  })
  return found ? kept : header
}
