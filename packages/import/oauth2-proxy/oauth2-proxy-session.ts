import { parseRedisUrl, placeholder } from '../../../src/entries/import.ts'
import { goDurationMs } from '../common/go-duration.ts'
import { inMemory, inRedis, sessionTimes, usableDomain } from '../common/session-settings.ts'
import type { Translation } from '../common/translation.ts'

/** Translates the settings of sessions, Redis and the cookie to `session:`. */
export function translateSession(from: Translation, externalUrl: string): object {
  const expire = goDurationMs(from.text('cookie_expire') ?? '')
  return {
    ...store(from),
    ...sessionTimes(expire, 'cookie_expire', 'oauth2-proxy', from),
    cookie: cookie(from, externalUrl),
  }
}

function store(from: Translation): object {
  const isRedis = from.text('session_store_type') === 'redis'
  from.changed('session_store_type', isRedis ? inRedis : inMemory)
  if (!isRedis) return { store: 'memory' }
  return { keys: [{ env: 'SESSION_KEY' }], store: { redis: redis(from) } }
}

function redis(from: Translation): object {
  const single = from.text('redis_connection_url')
  const [sentinels, nodes] = [from.list('redis_sentinel_connection_urls'), from.list('redis_cluster_connection_urls')]
  const urls = [...(single === undefined ? [] : [single]), ...sentinels, ...nodes].flatMap(urlIn)
  return {
    ...servers(single, sentinels, nodes, from),
    username: from.text('redis_username') ?? urls.map((url) => url.username).find((name) => name !== ''),
    password: secret(
      'redis_password',
      'REDIS_PASSWORD',
      from,
      urls.some(({ password }) => password !== ''),
    ),
    sentinel_password: secret('redis_sentinel_password', 'SENTINEL_PASSWORD', from),
    ca_file: from.text('redis_ca_path'),
  }
}

function servers(
  single: string | undefined,
  sentinels: readonly string[],
  nodes: readonly string[],
  from: Translation,
): object {
  const name = from.text('redis_sentinel_master_name')
  const [useSentinel, useCluster] = [from.isOn('redis_use_sentinel'), from.isOn('redis_use_cluster')]
  if (useSentinel) return { sentinels: sentinels.map(bare), name: name ?? placeholder }
  if (useCluster) return { cluster: nodes.map(bare) }
  const [url] = single === undefined ? [] : urlIn(single)
  try {
    const text = url === undefined ? '' : `${url.protocol}//${url.host}${url.pathname.replace(/\/$/, '')}`
    parseRedisUrl(text)
    return { url: text }
  } catch {
    from.decide('redis_connection_url', 'write the address of Redis as session.store.redis.url')
    return { url: `redis://${placeholder}:6379` }
  }
}

function urlIn(text: string): URL[] {
  return text.includes('://') && URL.canParse(text) ? [new URL(text)] : []
}

/** `redis://user:password@host:1234` → `host:1234`; with TLS, `rediss://host:1234`. */
function bare(server: string): string {
  const [url] = urlIn(server)
  if (url === undefined) return server.replace(/^.*@/, '')
  return url.protocol === 'rediss:' ? `rediss://${url.host}` : url.host
}

function secret(option: string, variable: string, from: Translation, isInUrl = false): object | undefined {
  if (from.text(option) === undefined && !isInUrl) return undefined
  from.changed(option, `the file contains no secret; set the environment variable ${variable}`)
  return { env: variable }
}

function cookie(from: Translation, externalUrl: string): object | undefined {
  const name = from.text('cookie_name')?.replace(/^__(?:Host|Secure)-/i, '')
  const sameSite = from.text('cookie_samesite')
  if (sameSite === 'none')
    from.lost(
      'cookie_samesite',
      'SameSite is Lax, because with SameSite=None other sites could send requests with the session',
    )
  const isValidName = name !== undefined && /^(?!__)[\w-]{1,64}$/.test(name)
  const isValidSameSite = sameSite === 'lax' || sameSite === 'strict'
  const domain = cookieDomain(from, externalUrl)
  if (!isValidName && !isValidSameSite && domain === undefined) return undefined
  return {
    ...(isValidName && { name }),
    ...(domain !== undefined && { domain }),
    ...(isValidSameSite && { same_site: sameSite }),
  }
}

/** The first cookie domain that the host of `external_url` belongs to. */
function cookieDomain(from: Translation, externalUrl: string): string | undefined {
  const given = from.list('cookie_domains')
  const [allowed] = from.list('whitelist_domains')
  const domain = usableDomain(given, externalUrl)
  if (given.length > 0)
    from[domain !== undefined ? 'changed' : 'lost'](
      'cookie_domains',
      domain !== undefined
        ? `the hosts of ${domain} share one session (session.cookie.domain), and each of them receives the cookie; give each application on another host an upstream with its own external_url, which may be https://*.${domain}`
        : 'no domain in it has the host of external_url and https; for one session on several hosts, set session.cookie.domain',
    )
  if (allowed !== undefined)
    from.changed(
      'whitelist_domains',
      'after the sign-in, the gateway redirects only to hosts that an external_url names; with session.cookie.domain, one may be https://*.DOMAIN',
    )
  return domain
}
