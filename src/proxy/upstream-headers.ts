import { withoutCookies } from '../core/cookies.ts'
import type { ForwardedFacts } from '../gate/request-facts.ts'
import { canonicalName } from '../identity/reserved-names.ts'
import { connectionOptions, isHopByHop, noConnectionOptions } from './hop-by-hop.ts'

export interface UpstreamHeadersInput {
  /** The names that only the gateway may set, in canonical form. */
  readonly reserved: ReadonlySet<string>
  readonly isGatewayCookie: (name: string) => boolean
  readonly host: string
  readonly forwarded: ForwardedFacts
  /** Name and value in turn. */
  readonly identity: readonly string[]
}

/**
 * The header lines for the upstream, name and value in turn, from those that came in. First everything goes that the client
 * may not say: what `Connection` names, hop-by-hop fields, identity, forwarding. Only then is ours added, so that nothing the
 * client wrote can take it away (RFC 9110 §7.6.1, RFC 9700 §4.13). Lines of the same name stay apart and in order.
 */
export function upstreamHeaders(received: readonly string[], input: UpstreamHeadersInput): string[] {
  const listed = namedInConnection(received)
  const lines = ['Host', input.host]
  let contentLength: string | undefined

  for (let at = 0; at + 1 < received.length; at += 2) {
    const name = received[at] as string
    const value = received[at + 1] as string
    const lowerCase = name.toLowerCase()
    if (isWithheld(lowerCase) || input.reserved.has(canonicalName(lowerCase)) || listed.has(lowerCase)) continue

    if (lowerCase === 'cookie') {
      const cookies = withoutGatewayCookies(value, input.isGatewayCookie)
      if (cookies !== undefined) lines.push(name, cookies)
    } else if (lowerCase !== 'content-length') {
      lines.push(name, value)
    } else if (contentLength === undefined) {
      contentLength = value
      lines.push(name, value)
    }
  }

  const { forwardedFor, proto, host } = input.forwarded
  lines.push('X-Forwarded-For', forwardedFor, 'X-Forwarded-Proto', proto, 'X-Forwarded-Host', host)
  for (const nameOrValue of input.identity) lines.push(nameOrValue)
  return lines
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

// An upstream may read "X_Remote.User" as "X-Remote-User" (CGI, WSGI, PHP do): a name with anything but letters, digits and
// "-" could be an identity header in disguise, and goes.
const plainName = /^[a-z0-9-]+$/

/** "Host" is written anew; "Expect" is answered here; the rest would tell the upstream another address, scheme or path than ours. */
const withheld: ReadonlySet<string> = new Set(['host', 'expect', 'forwarded', 'x-real-ip', 'x-rewrite-url'])

function isWithheld(lowerCase: string): boolean {
  return (
    isHopByHop(lowerCase) ||
    withheld.has(lowerCase) ||
    lowerCase.startsWith('x-forwarded-') ||
    lowerCase.startsWith('x-original-') ||
    !plainName.test(lowerCase)
  )
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
