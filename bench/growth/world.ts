// Gateways that share an external URL and their sessions, with a configuration of a given size.
import { once } from 'node:events'
import { readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { noticesTag } from '../../src/session/store/redis/redis-connection.ts'
import { freePort } from '../../test/support/free-port.ts'
import { imageFlags } from '../../test/support/image.ts'
import { startCluster } from '../../test/support/redis-cluster.ts'
import { startRedis, type RedisServer, type Scope } from '../../test/support/redis.ts'
import { folderFor, type Bed } from '../bed.ts'
import { nodeEnvironment } from '../contenders/node-program.ts'
import type { Filled, FillOrder } from '../fill.ts'
import { claimNames, furtherClaimName } from '../people.ts'
import { builtGateway, start, startProgram, startServer, until } from '../process.ts'
import { microsOf, trafficOf } from '../redis-figures.ts'
import { exactMicros, memoryBytes } from '../usage.ts'
import { measuredCluster } from './simulation.ts'

/** What may grow. Absent: one, and ten claims. */
export interface WorldSize {
  /** Gateway processes, each of its own. */
  readonly replicas?: number
  readonly upstreams?: number
  /** Rules of the upstream that is requested. */
  readonly rules?: number
  /** Claims of a person, each with a header. */
  readonly claims?: number
  /** Six nodes: three primaries, each with a replica. Absent: one Redis. */
  readonly isCluster?: boolean
  /** The lifetime of access tokens. Absent: a day. */
  readonly tokenSeconds?: number
  /** Clients may use HTTP/2, and an application at `/events` has event streams. */
  readonly hasEvents?: boolean
}

/** Processor time in µs, and traffic of Redis, since the start of a world. */
export interface Totals {
  readonly gateway: number
  readonly redis: number
  /** Of the one node that all notices go through. It counts for `redis` too. */
  readonly notices: number
  readonly commands: number
  /** To and from Redis, in bytes. In a Cluster, its bus does not count. */
  readonly bytes: number
}

export interface World {
  readonly size: WorldSize
  /** The URL of each replica. The first is the external URL. */
  readonly origins: readonly string[]
  readonly client_id: string
  totals(): Promise<Totals>
  /** The resident memory of one gateway process, in bytes: the mean of the replicas. */
  gatewayBytes(): number
  /** The Redis nodes. */
  readonly servers: readonly Redis[]
  /** Stores sessions of new people, without sign-ins. Resolves to the first `sample` of them. */
  fill(count: number, sample?: number): Promise<readonly Filled[]>
  /** Changes the configuration of all replicas; resolves when they have applied it. */
  reload(): Promise<void>
  stop(): Promise<void>
}

const secrets = {
  CLIENT_SECRET: 'correct horse battery staple',
  SESSION_KEY: Buffer.alloc(32, 1).toString('base64'),
}
const anyStreams = ['max_streams: 65535', 'max_streams_per_client: 65535']
let worlds = 0

/** Starts gateways on the first processor. Everything else runs on the second one. */
export async function startWorld(bed: Bed, size: WorldSize): Promise<World> {
  const over: (() => unknown)[] = []
  const scope = { after: (tidy: () => unknown) => void over.unshift(tidy) }
  const client_id = `growth-${(worlds += 1)}`
  const store = await startStore(scope, size)
  const events = size.hasEvents === true ? await startEvents(scope) : undefined
  const ports = await Promise.all(Array.from({ length: size.replicas ?? 1 }, () => freePort()))
  const origins = ports.map((port) => `http://127.0.0.1:${port}`)
  const { claims, tokenSeconds } = size
  const counts = { ...(claims && { claims }), ...(tokenSeconds && { tokenSeconds }) }
  const client = { client_id, client_secret: secrets.CLIENT_SECRET }
  bed.provider.register({ ...client, redirect_uri: `${origins[0]}/.gatehouse/callback`, ...counts })
  const replicas: Replica[] = []
  for (const port of ports) {
    const text = configuration(bed, size, { port, external: origins[0] ?? '', client_id, yaml: store.yaml, events })
    const replica = await startReplica(bed, `${client_id}-${port}`, text)
    replicas.push(replica)
    scope.after(replica.stop)
  }
  const filler = start('fill.ts')
  scope.after(() => filler.kill())
  const place = { issuer: bed.provider.issuer, client_id, sessionKey: secrets.SESSION_KEY, keyPrefix: 'gatehouse:' }
  return {
    ...{ size, origins, client_id, servers: store.servers },
    totals: async () => {
      const gateway = sum(replicas.map(({ pid }) => exactMicros(pid)))
      const micros = await Promise.all(store.servers.map(microsOf))
      const traffic = await Promise.all(store.servers.map(trafficOf))
      return {
        ...{ gateway, redis: sum(micros), notices: micros[store.noticesAt] ?? NaN },
        commands: sum(traffic.map(({ commands }) => commands)),
        bytes: sum(traffic.map(({ received, sent }) => received + sent)),
      }
    },
    gatewayBytes: () => sum(replicas.map(({ pid }) => memoryBytes(pid))) / replicas.length,
    fill: async (count, sample = count) => {
      const order = { kind: 'fill', place: { ...place, ...store.place, ...counts }, count, sample } as const
      filler.send(order satisfies FillOrder)
      const [filled] = (await once(filler, 'message')) as [readonly Filled[]]
      return filled
    },
    reload: async () => void (await Promise.all(replicas.map((replica) => replica.reload()))),
    stop: async () => {
      for (const tidy of over) await tidy()
    },
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((all, one) => all + one, 0)
}

/**
 * Starts one Redis, or a Cluster. `noticesAt` is the index of the node that all notices go through.
 */
async function startStore(scope: Scope, { isCluster = false }: WorldSize) {
  const connect = ({ port }: RedisServer) => {
    const redis = new Redis(port, '127.0.0.1', { enableReadyCheck: false })
    scope.after(() => redis.disconnect())
    return redis
  }
  if (!isCluster) {
    const server = await startRedis(scope)
    const place = { redis: server.url }
    return { servers: [connect(server)], noticesAt: 0, place, yaml: `url: "${server.url}"` }
  }
  const { primaries, replicas, nodes, primaryOf } = await startCluster(scope, { replicas: measuredCluster.primaries })
  const servers = [...primaries, ...replicas].map(connect) as [Redis, ...Redis[]]
  const noticesAt = primaries.indexOf(primaryOf(Number(await servers[0].cluster('KEYSLOT', `{${noticesTag}}`))))
  const yaml = `cluster: [${nodes.map(({ port }) => `"redis://127.0.0.1:${port}"`).join(', ')}]`
  return { servers, noticesAt, place: { redis: '', cluster: nodes }, yaml }
}

/** Starts the application with event streams; resolves to its URL. */
async function startEvents(scope: Scope): Promise<string> {
  const { pid, url } = await startServer('growth/events.ts')
  scope.after(() => process.kill(pid))
  return url
}

interface Replica {
  readonly pid: number
  reload(): Promise<void>
  stop(): Promise<void>
}

async function startReplica(bed: Bed, name: string, text: string): Promise<Replica> {
  const folder = folderFor(bed, name)
  const [file, logFile] = [join(folder, 'gateway.yaml'), join(folder, 'log')]
  const untilLogged = (event: string) =>
    until(() => readFileSync(logFile, 'utf8').includes(event), `${name} did not log "${event}"`)
  writeFileSync(file, text)
  const program = startProgram({
    command: process.execPath,
    args: [...imageFlags, builtGateway, 'run', '--config', file],
    cpus: '0',
    env: { ...secrets, ...nodeEnvironment(bed) },
    logFile,
  })
  await untilLogged('gatehouse is ready')
  let reloads = 0
  return {
    ...program,
    reload: async () => {
      // The gateway appends, so it continues at the beginning.
      truncateSync(logFile)
      reloads += 1
      writeFileSync(file, text.replace('X-Reload: { value: "0" }', `X-Reload: { value: "${reloads}" }`))
      process.kill(program.pid, 'SIGHUP')
      await untilLogged('config.reloaded')
    },
  }
}

interface Place {
  readonly port: number
  readonly external: string
  readonly client_id: string
  /** Where the sessions are. */
  readonly yaml: string
  /** The URL of the application with event streams. */
  readonly events: string | undefined
}

/** The measured requests lead to the last upstream and to its last rule. */
function configuration(bed: Bed, size: WorldSize, { port, external, client_id, yaml, events }: Place): string {
  const { upstreams = 1, rules = 1, claims = claimNames.length } = size
  const lines = (count: number, of: (n: number) => string) => Array.from({ length: count }, (_, n) => of(n)).join('\n')
  const decoy = (n: number) =>
    `  decoy-${n}: { url: "http://${bed.upstream}", path: /decoy-${n}, headers: { X-Remote-User: sub } }`
  const unmet = (n: number) => `      - { path: /rule-${n}/*, require: { claim: groups, any_of: [team-${n}] } }`
  const ofEvents = `  events: { url: "${events}", protocol: h2c, path: /events, ${anyStreams.join(', ')}, headers: { X-Remote-User: sub } }`
  const header = (name: string) => `      X-${name.replaceAll('_', '-')}: ${name}`
  return `version: 1
listen: { address: 127.0.0.1:${port}, h2c: ${events !== undefined} }
external_url: ${external}
limits: { connections: 100000, per_client: { connections: 100000, sign_ins: 1000000/m, callbacks: 1000000/m } }
log: { access: true }
provider: { issuer: "${bed.provider.issuer}", client_id: ${client_id}, client_secret: { env: CLIENT_SECRET } }
session:
  keys: [{ env: SESSION_KEY }]
  store: { redis: { ${yaml} } }
upstreams:
${lines(upstreams - 1, decoy)}
${events === undefined ? '' : ofEvents}
  application:
    url: http://${bed.upstream}
    ${anyStreams.join('\n    ')}
    headers:
      X-Reload: { value: "0" }
${lines(claims, (n) => header(claimNames[n] ?? furtherClaimName(n)))}
    rules:
${lines(rules - 1, unmet)}
      - { path: /bytes/* }
`
}
