import type { UpstreamConfig } from '../config/model/upstream.ts'

// Requests in a tunnel of HTTP, or of TLS with HTTP inside, would bypass the gate (h2c smuggling).
const carriesRequests = /^(?:h2c?|https?|tls)(?:\/|$)/i

/**
 * The protocols of an `Upgrade` field that the upstream receives. `listed` has names in lower case.
 * A name without a version allows all versions. A request that offers no listed protocol is an
 * ordinary request (RFC 9110 §7.8).
 */
export function carriedProtocols(upgrade: string | undefined, listed: readonly string[]): string {
  if (upgrade === undefined) return ''
  const isListed = (protocol: string) => listed.includes(protocol) || listed.includes(protocol.replace(/\/.*$/, ''))
  const protocols = upgrade.split(',').map((protocol) => protocol.trim())
  return protocols.filter((protocol) => isListed(protocol.toLowerCase()) && !carriesRequests.test(protocol)).join(', ')
}

/** The protocols that any of these upstreams lists. */
export function listedProtocols(upstreams: readonly Pick<UpstreamConfig, 'upgrade'>[]): readonly string[] {
  return [...new Set(upstreams.flatMap(({ upgrade }) => upgrade))]
}

/** Whether a request asks to switch its connection to another protocol (RFC 9110 §7.8). */
export function requestsUpgrade({
  connection,
  upgrade,
}: {
  readonly connection?: string | undefined
  readonly upgrade?: string | undefined
}): boolean {
  return upgrade !== undefined && /(?:^|,)[ \t]*upgrade[ \t]*(?:,|$)/i.test(connection ?? '')
}
