import type { RedisStoreConfig } from '../../../config/model/session.ts'
import { schemeMismatch } from '../../../wire/scheme-mismatch.ts'

/**
 * Explains that the first configured server speaks TLS although its URL does not say so, or the
 * reverse. See {@link schemeMismatch}.
 */
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
