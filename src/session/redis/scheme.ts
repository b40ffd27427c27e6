import type { RedisStoreConfig } from '../../config/model.ts'
import { schemeMismatch } from '../../core/scheme-mismatch.ts'

/**
 * Whether the first configured server speaks something else than its URL says: see {@link
 * schemeMismatch}.
 */
export async function redisSchemeMismatch(why: string, config: RedisStoreConfig): Promise<string | undefined> {
  const [setting, server] = firstServerOf(config)
  const schemes = { isTls: config.tls !== undefined, tlsScheme: 'rediss://', plainScheme: 'redis://' }
  const found = await schemeMismatch(why, { ...server, ...schemes })
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

/** Does not occur: the schema wants at least one. */
const nowhere = { host: '127.0.0.1', port: 0 }
