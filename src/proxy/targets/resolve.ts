import { promises as dns, type SrvRecord } from 'node:dns'
import { isIPv6 } from 'node:net'
import type { ResolveConfig, TargetConfig } from '../../config/model/upstream.ts'
import { reason } from '../../core/errors.ts'

/** How long a DNS server may take, in ms, and how often it is asked. */
const [timeoutMs, tries] = [2_000, 2]
/** How many targets a name may have. Further ones are ignored. */
const maxTargets = 256
/** How many hosts of SRV records are resolved. Further ones are ignored. */
const maxHosts = 64

/** Asks the DNS servers of a configuration. */
export function createResolver({ servers }: Pick<ResolveConfig, 'servers'>): dns.Resolver {
  const resolver = new dns.Resolver({ timeout: timeoutMs, tries })
  if (servers.length > 0) resolver.setServers(servers)
  return resolver
}

/**
 * The targets that a name has now, in a fixed order.
 * @throws {Error} when DNS gives no address
 */
export async function resolveTargets(config: ResolveConfig, resolver: dns.Resolver): Promise<readonly TargetConfig[]> {
  const { kind, name, scheme, port } = config
  const found =
    kind === 'a'
      ? (await addressesOf(name, resolver)).map((address) => ({ address, port, weight: 1, backup: false }))
      : await servicesOf(name, resolver)
  const targets = new Map<string, TargetConfig>()
  for (const { address, port: ownPort, weight, backup } of found) {
    const url = new URL(`${scheme}://${isIPv6(address) ? `[${address}]` : address}:${ownPort}`)
    if (targets.size < maxTargets) targets.set(url.origin, { url, socketPath: undefined, weight, backup })
  }
  if (targets.size === 0) throw new Error(`${name} has no address`)
  return [...targets.keys()].toSorted().map((origin) => targets.get(origin) as TargetConfig)
}

/** The IPv4 and IPv6 addresses of a host. */
async function addressesOf(host: string, resolver: dns.Resolver): Promise<readonly string[]> {
  const { values: addresses, failure } = await settled([resolver.resolve4(host), resolver.resolve6(host)])
  if (addresses.length === 0) throw new Error(`${host} has no address: ${reason(failure)}`, { cause: failure })
  return addresses
}

/** The values of the queries that succeeded, and the error of the first one that failed. */
async function settled<T>(
  queries: readonly Promise<readonly T[]>[],
): Promise<{ readonly values: readonly T[]; readonly failure: unknown }> {
  const results = await Promise.allSettled(queries)
  return {
    values: results.flatMap((result) => (result.status === 'fulfilled' ? result.value : [])),
    failure: results.find((result) => result.status === 'rejected')?.reason,
  }
}

interface Service {
  readonly address: string
  readonly port: number
  readonly weight: number
  readonly backup: boolean
}

/** The addresses of the SRV records of a service. A host that cannot be resolved is left out. */
async function servicesOf(name: string, resolver: dns.Resolver): Promise<readonly Service[]> {
  const records = (await resolver.resolveSrv(name)).slice(0, maxHosts)
  const first = Math.min(...records.map(({ priority }) => priority))
  const ofRecord = async ({ name: host, port, weight, priority }: SrvRecord): Promise<readonly Service[]> => {
    const addresses = await addressesOf(host, resolver)
    // A weight of 0 gets few requests, if others have more (RFC 2782).
    const share = Math.max(1, weight)
    return addresses.map((address) => ({ address, port, weight: share, backup: priority > first }))
  }
  const { values: services, failure } = await settled(records.map(ofRecord))
  if (services.length === 0 && failure !== undefined) throw failure as Error
  return services
}
