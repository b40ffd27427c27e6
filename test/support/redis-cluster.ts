import { Redis } from 'ioredis'
import type { RedisClusterConfig } from '../../src/config/model/session.ts'
import { freePort } from './free-port.ts'
import { startRedis, tlsOf, type RedisServer, type RedisTls, type Scope } from './redis.ts'
import { until } from './until.ts'

export interface ClusterSetup {
  readonly primaries: readonly RedisServer[]
  /** The replica of the primary with the same index, if it has one. */
  readonly replicas: readonly RedisServer[]
  /** An address for `session.store.redis.cluster`. */
  readonly nodes: readonly { readonly host: string; readonly port: number }[]
  /** The primary that serves a slot at the start. */
  primaryOf(slot: number): RedisServer
}

export interface ClusterOptions {
  /** How many of the three primaries have a replica. */
  readonly replicas?: number
  readonly tls?: RedisTls
  readonly args?: readonly string[]
  /** Where other nodes and clients find a node. Default: where it listens, at 127.0.0.1. */
  readonly place?: (node: { readonly n: number; readonly port: number; readonly bus: number }) => Promise<NodePlace>
}

export interface NodePlace {
  readonly host: string
  /** Further arguments of this node. */
  readonly args: readonly string[]
}

const ranges = [
  [0, 5_460],
  [5_461, 10_922],
  [10_923, 16_383],
] as const

/**
 * Starts three primaries and some replicas. Their files list all nodes, so no node has to be
 * introduced.
 */
export async function startCluster(scope: Scope, options: ClusterOptions = {}): Promise<ClusterSetup> {
  const { replicas = 0, tls, args = [], place = () => Promise.resolve({ host: '127.0.0.1', args: [] }) } = options
  const members = await Promise.all(
    Array.from({ length: 3 + replicas }, async (_, n) => {
      const [port, bus] = [await freePort(), await freePort()]
      return { n, id: String(n).repeat(40), port, bus, place: await place({ n, port, bus }) }
    }),
  )
  const linesFor = (own: number) =>
    members.map(({ n, id, port, bus, place: { host } }) => {
      const [from, to] = ranges[n] ?? []
      const role =
        n < 3
          ? `master - 0 0 ${n + 1} connected ${from}-${to}`
          : `slave ${String(n - 3).repeat(40)} 0 0 ${n - 2} connected`
      return `${id} ${host}:${port}@${bus} ${own === n ? 'myself,' : ''}${role}`
    })
  const servers = await Promise.all(
    members.map(({ n, port, bus, place }) =>
      startRedis(scope, {
        port,
        ...(tls && { tls }),
        files: { 'nodes.conf': `${linesFor(n).join('\n')}\nvars currentEpoch 3 lastVoteEpoch 0\n` },
        args: [
          ...['--cluster-enabled', 'yes', '--cluster-port', String(bus), '--cluster-node-timeout', '1000'],
          ...['--cluster-replica-validity-factor', '0', '--repl-diskless-sync-delay', '0', ...args, ...place.args],
        ],
      }),
    ),
  )
  for (const { port } of servers) {
    const redis = new Redis(port, '127.0.0.1', { enableReadyCheck: false, ...(tls && { tls: tlsOf(tls) }) })
    await until('the node is at work', async () => {
      const [cluster, replication] = [await redis.cluster('INFO'), await redis.info('replication')]
      return /cluster_state:ok/.test(String(cluster)) && !/master_link_status:down/.test(replication)
    })
    redis.disconnect()
  }
  const [primaries, others] = [servers.slice(0, 3), servers.slice(3)]
  return {
    primaries,
    replicas: others,
    nodes: primaries.map(({ port }) => ({ host: '127.0.0.1', port })),
    primaryOf: (slot) => primaries[ranges.findIndex(([from, to]) => slot >= from && slot <= to)] as RedisServer,
  }
}

/** Returns the configuration of a store in this Cluster. */
export function clusterConfig({ nodes }: Pick<ClusterSetup, 'nodes'>): RedisClusterConfig {
  return {
    ...{ kind: 'redis_cluster', nodes, timeoutMs: 5_000 },
    ...{ username: undefined, password: undefined, tls: undefined },
    ...{ keyPrefix: 'gatehouse:', replicasAcknowledge: 0 },
  }
}
