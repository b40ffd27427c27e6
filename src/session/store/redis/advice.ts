import type { RedisStoreConfig } from '../../../config/model/session.ts'
import { connectionAdvice } from '../../../core/connection-advice.ts'
import { schemeMismatch } from '../../../wire/scheme-mismatch.ts'

/** A problem that an operator solves in the configuration. */
export type RedisProblem = 'unknown_primary'

/** What to do about an error of Redis, or about a failed connection to it. */
export function redisAdvice({ why, problem }: { readonly why: string; readonly problem?: RedisProblem }): string {
  if (problem === 'unknown_primary') return 'compare session.store.redis.name with SENTINEL MASTERS'
  const known = advice.find(([pattern]) => pattern.test(why))?.[1]
  return known ?? connectionAdvice({ why }, 'session.store.redis', 'session.store.redis.ca_file')
}

/** By the words of Redis. */
const advice: readonly (readonly [RegExp, string])[] = [
  [
    /NOAUTH|Authentication required/,
    'it requires a password: set session.store.redis.password, and username if it has ACL users',
  ],
  [
    /WRONGPASS|invalid (?:username|password)|\bAUTH\b/,
    'compare username and password with those of Redis (ACL LIST shows the users)',
  ],
  [/invalid DB index|out of range/, 'use a database that it has: 0 to 15 by default'],
  [
    /unknown command.*sentinel/i,
    'it is a Redis, and not a Sentinel: use its address in session.store.redis.url, or name the port of the Sentinels, which is 26379 by default',
  ],
  [/cluster support disabled/, 'it is not a node of a Cluster: use its address in session.store.redis.url'],
  [
    /not the protocol of Redis/,
    'another program listens there, such as a web server: compare host and port with session.store.redis',
  ],
  [
    /not connected yet/,
    'it accepts the connection and does not respond: compare the port, and the scheme redis:// or rediss:// (TLS)',
  ],
  [/ETIMEDOUT/, 'compare the scheme redis:// or rediss:// (TLS), and look for a firewall or a missing route'],
  [/NOPERM/, 'give the Redis user the named permission: see docs/redis.md'],
  [/^READONLY/, 'use the address of the primary instead of a replica'],
  [/^MOVED/, 'it is a node of a Cluster: use session.store.redis.cluster'],
  [/^OOM/, 'it is full: raise its maxmemory, or check what else is stored there'],
  [/^MISCONF/, 'it cannot write to its disk: check its log'],
  [/^NOREPLICAS/, 'it has too few replicas for min-replicas-to-write: check that they run'],
  [/^CLUSTERDOWN/, 'some slots of the Cluster have no node: check CLUSTER INFO'],
  [/^LOADING/, 'it is still loading its data: wait a moment'],
  [/^[A-Z]{3,} /, 'look up the error in the documentation of Redis'],
]

/** Whether the first configured server speaks TLS and its URL does not, or the reverse. */
export async function redisSchemeMismatch(problem: string, config: RedisStoreConfig): Promise<string | undefined> {
  const [setting, server] = firstServerOf(config)
  const schemes = { isTls: config.tls !== undefined, tlsScheme: 'rediss://', plainScheme: 'redis://' }
  const found = await schemeMismatch(problem, { ...server, ...schemes })
  return found === undefined ? undefined : `${found} in session.store.redis.${setting}`
}

function firstServerOf(config: RedisStoreConfig): [setting: string, { readonly host: string; readonly port: number }] {
  switch (config.kind) {
    case 'redis':
      return ['url', { host: config.url.hostname, port: Number(config.url.port || 6379) }]
    case 'redis_sentinel':
      return ['sentinels', config.sentinels[0] ?? nowhere]
    case 'redis_cluster':
      return ['cluster', config.nodes[0] ?? nowhere]
  }
}

/** Never used, because the schema requires at least one address. */
const nowhere = { host: '127.0.0.1', port: 0 }
