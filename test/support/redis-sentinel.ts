import { Redis } from 'ioredis'
import type { RedisSentinelConfig } from '../../src/config/model/session.ts'
import { freePort } from './free-port.ts'
import { startRedis, tlsOf, type RedisServer, type RedisTls, type Scope } from './redis.ts'
import { until } from './until.ts'

export interface SentinelSetup {
  readonly sentinel: RedisServer
  /** The name of the primary at the Sentinel. */
  readonly name: string
  /** The first one is the primary at the start. */
  readonly servers: readonly [RedisServer, RedisServer]
}

export interface SentinelOptions {
  readonly password?: string
  readonly sentinelPassword?: string
  readonly tls?: RedisTls
  /**
   * Absent: the Sentinel begins a failover after 300 ms without a reply. `false`: never, even on a
   * machine that is busy for seconds.
   */
  readonly failsOver?: boolean
}

/** A primary, its replica, and a Sentinel that promotes the replica when the primary fails. */
export async function startSentinel(scope: Scope, options: SentinelOptions = {}): Promise<SentinelSetup> {
  const { password, sentinelPassword, tls, failsOver = true } = options
  const common = ['--repl-diskless-sync-delay', '0', ...(password === undefined ? [] : ['--masterauth', password])]
  const secured = { ...(tls && { tls }), ...(password !== undefined && { password }) }
  const primary = await startRedis(scope, { ...secured, args: common })
  const replicaof = ['--replicaof', '127.0.0.1', String(primary.port)]
  const replica = await startRedis(scope, { ...secured, args: [...common, ...replicaof] })
  const following = client({ ...options, port: replica.port })
  await until('the replica follows', async () => /master_link_status:up/.test(await following.info('replication')))
  following.disconnect()

  const name = 'main'
  const port = await freePort()
  const config = [
    `sentinel monitor ${name} 127.0.0.1 ${primary.port} 1`,
    `sentinel down-after-milliseconds ${name} ${failsOver ? 300 : 3_600_000}`,
    `sentinel failover-timeout ${name} 3000`,
    ...(password === undefined ? [] : [`sentinel auth-pass ${name} ${password}`]),
    ...(sentinelPassword === undefined ? [] : [`requirepass ${sentinelPassword}`]),
  ]
  const sentinel = await startRedis(scope, { port, sentinel: config, ...(tls && { tls }) })
  const asking = client({ ...(tls && { tls }), password: sentinelPassword, port })
  await until('the Sentinel knows the replica', async () => {
    const replicas = (await asking.call('SENTINEL', 'REPLICAS', name)) as unknown[]
    return replicas.length === 1
  })
  asking.disconnect()
  return { sentinel, name, servers: [primary, replica] }
}

function client({
  port,
  password,
  tls,
}: {
  readonly port: number
  readonly password?: string | undefined
  readonly tls?: RedisTls
}) {
  return new Redis(port, '127.0.0.1', {
    enableReadyCheck: false,
    ...(password !== undefined && { password }),
    ...(tls && { tls: tlsOf(tls) }),
  })
}

/** Returns the configuration of a store behind this Sentinel. */
export function sentinelConfig({ sentinel, name }: Pick<SentinelSetup, 'sentinel' | 'name'>): RedisSentinelConfig {
  return {
    kind: 'redis_sentinel',
    sentinels: [{ host: '127.0.0.1', port: sentinel.port }],
    ...{ name, database: 0, sentinelUsername: undefined, sentinelPassword: undefined },
    ...{ username: undefined, password: undefined, tls: undefined },
    ...{ keyPrefix: 'gatehouse:', replicasAcknowledge: 0 },
    // Several failovers at once keep a machine busy.
    timeoutMs: 2_000,
  }
}
