// Redis with Sentinels or as a Cluster, whose nodes find each other, and are found, through the
// links of the network.
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { freePort } from '../test/support/free-port.ts'
import type { Random } from '../test/support/random.ts'
import { startCluster } from '../test/support/redis-cluster.ts'
import { startRedis, type RedisServer, type Scope } from '../test/support/redis.ts'
import { until } from '../test/support/until.ts'
import type { Network } from './network.ts'
import type { Setup } from './setup.ts'

export interface StoreNode {
  readonly name: string
  readonly server: RedisServer
  /** A connection beside the network, for the world itself. */
  readonly redis: Redis
}

export interface Store {
  /** YAML of `session.store`, on one line. */
  readonly yaml: string
  readonly nodes: readonly StoreNode[]
  /** The names of the nodes and, if there are any, of the Sentinels. */
  readonly parties: readonly string[]
  /** Where the sessions are. Absent: in Redis. */
  readonly file?: string
  /** Makes another node a primary, as an operator does. Absent: there is no other node. */
  failOver?(random: Random): Promise<void>
}

/** What every node has: the usual persistence, and no writes at a primary that is cut off. */
const common = [
  ...['--protected-mode', 'no', '--appendonly', 'yes', '--appendfsync', 'everysec', '--save', ''],
  ...['--repl-diskless-sync-delay', '0', '--repl-ping-replica-period', '1', '--repl-timeout', '5'],
]
/** With Sentinels, an isolated primary accepts no write after this time, in s. */
const maxLagSeconds = 1
const settingsOf = ({ replicasAcknowledge }: Setup) =>
  `timeout: 2s${replicasAcknowledge === 0 ? '' : `, replicas_acknowledge: ${replicasAcknowledge}`}`

/** `folder` is for the file of a gateway that is alone, and for the logs of Redis. */
export async function startStore(scope: Scope, network: Network, setup: Setup, folder: string): Promise<Store> {
  switch (setup.kind) {
    case 'sentinel':
      return startSentinels(scope, network, setup, logsIn(folder))
    case 'cluster':
      return startClusterOfSix(scope, network, setup, logsIn(folder))
    case 'plain':
      return startPlain(scope, network, setup, logsIn(folder))
    case 'file': {
      const file = join(folder, 'sessions.db')
      return { yaml: `{ file: ${file} }`, file, nodes: [], parties: [] }
    }
  }
}

/** The argument that makes a node of this name write its log into the folder. */
type LogArgument = (name: string) => readonly string[]

const logsIn =
  (folder: string): LogArgument =>
  (name) => ['--logfile', join(folder, `${name}.log`)]

async function startPlain(scope: Scope, network: Network, setup: Setup, log: LogArgument): Promise<Store> {
  const [name, port] = ['redis-1', await freePort()]
  await network.link(name, port)
  const node = nodeOf(scope, name, await startRedis(scope, { port, args: [...common, ...log(name)] }))
  const yaml = `{ redis: { url: "redis://${network.host(name)}:${port}", ${settingsOf(setup)} } }`
  return { yaml, nodes: [node], parties: [name] }
}

async function startSentinels(scope: Scope, network: Network, setup: Setup, log: LogArgument): Promise<Store> {
  const names = ['redis-1', 'redis-2', 'redis-3']
  const nodes: StoreNode[] = []
  const first = { host: network.host('redis-1'), port: await freePort() }
  for (const name of names) {
    const isFirst = name === 'redis-1'
    const port = isFirst ? first.port : await freePort()
    const host = network.host(name)
    await network.link(name, port)
    const args = [
      ...['--bind-source-addr', host, '--replica-announce-ip', host, '--replica-announce-port', String(port)],
      ...['--min-replicas-to-write', '1', '--min-replicas-max-lag', String(maxLagSeconds)],
      ...(isFirst ? [] : ['--replicaof', first.host, String(first.port)]),
    ]
    nodes.push(nodeOf(scope, name, await startRedis(scope, { port, args: [...common, ...log(name), ...args] })))
  }
  for (const { name, redis } of nodes.slice(1))
    await until(`${name} follows`, async () => /master_link_status:up/.test(await redis.info('replication')))

  const sentinels: (Pick<StoreNode, 'name' | 'redis'> & { readonly place: string })[] = []
  for (const name of ['sentinel-1', 'sentinel-2', 'sentinel-3']) {
    const [host, port] = [network.host(name), await freePort()]
    await network.link(name, port)
    const sentinel = [
      ...[`sentinel announce-ip ${host}`, `sentinel announce-port ${port}`],
      `sentinel monitor main ${first.host} ${first.port} 2`,
      ...['sentinel down-after-milliseconds main 2500', 'sentinel failover-timeout main 6000'],
      'sentinel parallel-syncs main 2',
    ]
    const args = ['--bind-source-addr', host, '--protected-mode', 'no', ...log(name)]
    const { redis } = nodeOf(scope, name, await startRedis(scope, { port, sentinel, args }))
    sentinels.push({ name, redis, place: `"${host}:${port}"` })
  }
  for (const { name, redis } of sentinels)
    await until(`${name} knows the others`, async () => {
      const [peers, replicas] = [
        await redis.call('SENTINEL', 'SENTINELS', 'main'),
        await redis.call('SENTINEL', 'REPLICAS', 'main'),
      ]
      return (peers as unknown[]).length === 2 && (replicas as unknown[]).length === 2
    })
  return {
    yaml: `{ redis: { sentinels: [${sentinels.map(({ place }) => place).join(', ')}], name: main, ${settingsOf(setup)} } }`,
    nodes,
    parties: [...names, ...sentinels.map(({ name }) => name)],
    failOver: async (random) => {
      await random
        .pick(sentinels)
        .redis.call('SENTINEL', 'FAILOVER', 'main')
        .catch(() => {})
    },
  }
}

async function startClusterOfSix(scope: Scope, network: Network, setup: Setup, log: LogArgument): Promise<Store> {
  const nameOf = (n: number) => `redis-${n + 1}`
  const { primaries, replicas } = await startCluster(scope, {
    replicas: 3,
    args: [...common, '--cluster-node-timeout', '3000'],
    place: async ({ n, port, bus }) => {
      const host = network.host(nameOf(n))
      await network.link(nameOf(n), port)
      await network.link(nameOf(n), bus)
      const announced = ['--cluster-announce-ip', host, '--cluster-announce-port', String(port)]
      return {
        host,
        args: [...announced, '--cluster-announce-bus-port', String(bus), '--bind-source-addr', host, ...log(nameOf(n))],
      }
    },
  })
  const nodes = [...primaries, ...replicas].map((server, n) => nodeOf(scope, nameOf(n), server))
  const places = nodes.map(({ name, server }) => `"${network.host(name)}:${server.port}"`)
  return {
    yaml: `{ redis: { cluster: [${places.join(', ')}], ${settingsOf(setup)} } }`,
    nodes,
    parties: nodes.map(({ name }) => name),
    failOver: async (random) => {
      const followers = await nodesOfRole({ nodes }, 'slave')
      if (followers.length > 0)
        await random
          .pick(followers)
          .redis.cluster('FAILOVER')
          .catch(() => {})
    },
  }
}

function nodeOf(scope: Scope, name: string, server: RedisServer): StoreNode {
  const redis = new Redis(server.port, '127.0.0.1', {
    ...{ enableReadyCheck: false, maxRetriesPerRequest: 0, retryStrategy: () => 200, commandTimeout: 2_000 },
  })
  redis.on('error', () => {})
  scope.after(() => redis.disconnect())
  return { name, server, redis }
}

async function roleOf({ redis }: StoreNode): Promise<'master' | 'slave' | undefined> {
  const role = (await redis.role().catch(() => [])) as readonly unknown[]
  return role[0] as 'master' | 'slave' | undefined
}

/** The role of each node; `undefined` for one that does not respond. */
export function rolesIn({ nodes }: Store) {
  return Promise.all(nodes.map(roleOf))
}

/** The nodes with this role now; a node that does not respond has none. */
export async function nodesOfRole({ nodes }: Pick<Store, 'nodes'>, role: 'master' | 'slave'): Promise<StoreNode[]> {
  const roles = await Promise.all(nodes.map(roleOf))
  return nodes.filter((_, n) => roles[n] === role)
}

/**
 * Makes a primary reject all writes (MISCONF), as with a full disk: it cannot store a snapshot. A
 * node that ended by itself meanwhile is started again.
 */
export async function failSnapshots({ name, redis, server }: StoreNode): Promise<() => Promise<void>> {
  const [, folder = ''] = (await redis.config('GET', 'dir')) as string[]
  const snapshot = join(folder, 'dump.rdb')
  rmSync(snapshot, { recursive: true, force: true })
  mkdirSync(snapshot)
  await redis.config('SET', 'save', '86400 1000000')
  await redis.bgsave().catch(() => {})
  return async () => {
    rmSync(snapshot, { recursive: true, force: true })
    const output = server.outputAfterEnd()
    if (output !== undefined) {
      await server.restart()
      throw new Error(`${name} had ended: ${output}`)
    }
    await redis.config('SET', 'save', '')
    await redis.bgsave()
  }
}

/** How many keys do not expire within some milliseconds, over all primaries. */
export async function lastingKeys(store: Store, withinMs: number): Promise<number> {
  let count = 0
  for (const { redis } of await nodesOfRole(store, 'master'))
    for await (const keys of redis.scanStream({ count: 500 }) as AsyncIterable<string[]>)
      for (const key of keys) {
        const left = await redis.pttl(key)
        if (left === -1 || left > withinMs) count += 1
      }
  return count
}
