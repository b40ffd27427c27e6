import type { Address } from '../addresses.ts'
import { readKeyPair } from '../document/pem-files.ts'
import type { Setting } from '../document/report.ts'
import type { RedisStoreConfig, RedisTlsConfig } from '../model/session.ts'
import type { RedisSettings } from '../settings.ts'
import { readEach } from './build-context.ts'

const fallback = new URL('rediss://stand-in.invalid')

/** One server by its URL, the primary that Sentinels name, or a Cluster. */
export function buildRedis(settings: RedisSettings, at: Setting): RedisStoreConfig {
  const { url, sentinels, cluster } = settings
  const { username, password, sentinelUsername, sentinelPassword, keyPrefix, timeoutMs, replicasAcknowledge } = settings
  const shared = { username, password, keyPrefix, timeoutMs, replicasAcknowledge }
  if (sentinels !== undefined) {
    const { servers, secure } = readServers(sentinels, 26379, at.below('sentinels'))
    return {
      kind: 'redis_sentinel',
      ...shared,
      sentinels: servers,
      name: settings.name ?? '',
      database: settings.database ?? 0,
      ...{ sentinelUsername, sentinelPassword },
      tls: readTls(settings, secure, 'sentinels', at),
    }
  }
  if (cluster !== undefined) {
    const { servers, secure } = readServers(cluster, 6379, at.below('cluster'))
    if ((settings.database ?? 0) !== 0) at.below('database').error('must be 0: a Cluster has no other database')
    return { kind: 'redis_cluster', ...shared, nodes: servers, tls: readTls(settings, secure, 'cluster', at) }
  }
  const server = url ?? fallback
  // A Cluster that is written in another form has no other database.
  if (settings.database !== undefined && !at.below('cluster').isReported)
    at.below('database').error(`belongs in the url: ${withDatabase(server, settings.database)}`)
  return { kind: 'redis', ...shared, url: server, tls: readTls(settings, server.protocol === 'rediss:', 'url', at) }
}

function withDatabase(server: URL, database: number): string {
  const example = new URL(server === fallback ? 'rediss://redis:6379' : server)
  example.pathname = `/${database}`
  return example.href
}

function readTls(
  settings: RedisSettings,
  secure: boolean,
  servers: 'url' | 'sentinels' | 'cluster',
  at: Setting,
): RedisTlsConfig | undefined {
  if (!secure && at.below(servers).isValid)
    for (const file of ['ca_file', 'cert_file', 'key_file'])
      if (at.below(file).isSet) at.below(file).error(`has no effect: ${servers} is without TLS; write rediss:// there`)
  const pair = readKeyPair(settings, at)
  return secure ? { ca: settings.ca, cert: pair?.cert, key: pair?.key } : undefined
}

/** A list of `HOST:PORT`; with TLS, all of them are `rediss://HOST:PORT`. */
function readServers(
  urls: readonly URL[],
  defaultPort: number,
  at: Setting,
): { readonly servers: readonly Address[]; readonly secure: boolean } {
  const secure = urls[0]?.protocol === 'rediss:'
  readEach(urls, at, (url, urlAt) => {
    if ((url.protocol === 'rediss:') !== secure)
      urlAt.error(
        secure
          ? 'must begin with rediss:// (TLS) as the first one does'
          : 'begins with rediss:// (TLS), and the first one does not; write rediss:// for all of them or for none',
      )
  })
  const servers = urls.map((url) => ({
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: Number(url.port || defaultPort),
  }))
  return { servers, secure }
}
