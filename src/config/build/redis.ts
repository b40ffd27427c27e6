import type { Address } from '../addresses.ts'
import { redisUrlOf } from '../document/foreign-settings.ts'
import type { Setting } from '../document/report.ts'
import type { RedisStoreConfig, RedisTlsConfig } from '../model/session.ts'
import type { List, RedisSettings } from '../settings.ts'
import { readEach } from './build-context.ts'
import { readAuthorities, readKeyPair } from './certificates.ts'
import { readSecret } from './secrets.ts'

const fallback = new URL('rediss://stand-in.invalid')

/** One server by its URL, the primary that Sentinels name, or a Cluster. */
export function buildRedis(settings: RedisSettings, at: Setting): RedisStoreConfig {
  const { url, sentinels, cluster } = settings
  const { username, password, sentinelPassword, keyPrefix, timeoutMs, replicasAcknowledge } = settings
  const shared = {
    ...{ username, keyPrefix, timeoutMs, replicasAcknowledge },
    password: password && readSecret(password, at.below('password')),
  }

  if (sentinels !== undefined) {
    const { servers, secure } = readServers(sentinels, 'redis-1:26379', at.below('sentinels'))
    return {
      kind: 'redis_sentinel',
      ...shared,
      sentinels: servers,
      name: settings.name ?? '',
      database: settings.database ?? 0,
      sentinelUsername: settings.sentinelUsername,
      sentinelPassword: sentinelPassword && readSecret(sentinelPassword, at.below('sentinel_password')),
      tls: readTls(settings, secure, 'sentinels', at),
    }
  }
  if (cluster !== undefined) {
    const { servers, secure } = readServers(cluster, 'redis-1:6379', at.below('cluster'))
    if ((settings.database ?? 0) !== 0) at.below('database').error('must be 0: a Cluster has no other database')
    return {
      kind: 'redis_cluster',
      ...shared,
      nodes: servers,
      tls: readTls(settings, secure, 'cluster', at),
    }
  }
  const meant = url?.includes('://') === true ? undefined : redisUrlOf(url)
  const server = at.below('url').parse(url, parseRedisUrl, meant && `write ${meant}`) ?? fallback
  // A Cluster that is written in another form has no other database.
  if (settings.database !== undefined && !at.below('cluster').isReported)
    at.below('database').error(`belongs in the url: ${withDatabase(server, settings.database)}`)
  return {
    kind: 'redis',
    ...shared,
    url: server,
    tls: readTls(settings, server.protocol === 'rediss:', 'url', at),
  }
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
  const ca = readAuthorities(settings.caFile, at.below('ca_file'))
  const pair = readKeyPair(settings, at)
  return secure ? { ca, cert: pair?.cert, key: pair?.key } : undefined
}

/** A list of `HOST:PORT`; with TLS, all of them are `rediss://HOST:PORT`. */
function readServers(
  list: List<string>,
  example: string,
  at: Setting,
): { readonly servers: readonly Address[]; readonly secure: boolean } {
  const defaultPort = Number(example.split(':')[1])
  const urls = readEach(list, at, (text, urlAt) =>
    urlAt.parse(text, () => ({ urlAt, url: parseServer(text, example) })),
  )
  const secure = urls[0]?.url.protocol === 'rediss:'
  for (const { urlAt, url } of urls)
    if ((url.protocol === 'rediss:') !== secure)
      urlAt.error(
        secure
          ? 'must begin with rediss:// (TLS) as the first one does'
          : 'begins with rediss:// (TLS), and the first one does not; write rediss:// for all of them or for none',
      )
  const servers = urls.map(({ url }) => ({
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: Number(url.port || defaultPort),
  }))
  return { servers, secure }
}

function parseServer(text: string, example: string): URL {
  const url = parseServerUrl(
    text.includes('://') ? text : `redis://${text}`,
    `HOST:PORT such as ${example} or, with TLS, rediss://${example}`,
  )
  if (!/^\/?$/.test(url.pathname) || /[?#]/.test(text))
    throw new SyntaxError(`must have nothing after the host and port, such as ${example}`)
  return url
}

/**
 * Where one Redis is: `redis://` or `rediss://`, without user name and password.
 * @throws {SyntaxError} names what is wrong
 */
export function parseRedisUrl(text: string): URL {
  const url = parseServerUrl(text, 'a redis:// or rediss:// URL such as rediss://redis:6379')
  if (!/^(\/\d{0,5})?$/.test(url.pathname) || text.includes('?') || text.includes('#'))
    throw new SyntaxError(
      'must have nothing but a database number after the host and port, such as rediss://redis:6379/0',
    )
  return url
}

function parseServerUrl(text: string, expected: string): URL {
  if (!/^rediss?:\/\/[^\s\\/]+/i.test(text) || !URL.canParse(text)) throw new SyntaxError(`must be ${expected}`)
  const url = new URL(text)
  if (url.password !== '')
    throw new SyntaxError('must not contain a password; write password: { env: NAME } or { file: PATH } beside it')
  if (url.username !== '') throw new SyntaxError('must not contain a user name; write username: beside it')
  return url
}
