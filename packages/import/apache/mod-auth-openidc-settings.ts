import { durationText, parseRedisUrl, placeholder, signingAlgorithms } from '../../../src/entries/import.ts'
import type { Notes } from '../common/notes.ts'
import { inMemory, inRedis, usableDomain } from '../common/session-settings.ts'
import { argsOf, issuerOf, type Site, valueOf } from './apache-site.ts'

/** Translates the settings of the provider and the client to `provider:`. */
export function translateProvider(site: Site, from: Notes): object {
  const issuer = issuerOf(site)
  if (issuer === undefined || !/^https?:/.test(issuer))
    from.decide(
      'OIDCProviderMetadataURL',
      'write the issuer as provider.issuer: the URL before /.well-known/openid-configuration',
    )
  const client_id = valueOf(site, 'OIDCClientID')
  if (client_id === undefined)
    from.decide('OIDCClientID', 'write the client ID of the gateway at the provider as provider.client_id')
  from.changed(
    'OIDCRedirectURI',
    `the redirect URI is ${site.externalUrl}/.gatehouse/callback: register it at the provider, beside the one of Apache; links to ?logout= become /.gatehouse/sign-out`,
  )
  if (argsOf(site, 'OIDCCryptoPassphrase') !== undefined)
    from.unneeded(
      'OIDCCryptoPassphrase',
      'session.keys replaces it, with another key; sessions are not migrated, so people sign in once more',
    )
  const scopes = valueOf(site, 'OIDCScope')
    ?.split(/\s+/)
    .filter((scope) => scope !== '')
  return {
    issuer: issuer !== undefined && /^https?:/.test(issuer) ? issuer : `https://${placeholder}.example.com`,
    client_id: client_id ?? placeholder,
    client_secret: clientSecret(site, from),
    token_endpoint_auth_method: authMethod(site, from),
    scopes: scopes && ['openid', ...scopes.filter((scope) => scope !== 'openid')],
    ...authorizationParams(site),
    id_token_signed_response_alg: algorithm(site, from),
    response_mode: valueOf(site, 'OIDCResponseMode') === 'form_post' ? 'form_post' : undefined,
    ca_file: valueOf(site, 'OIDCCABundlePath'),
  }
}

/** `OIDCOutgoingProxy HOST[:PORT] [USER:PASSWORD]`. */
export function translateProxy(site: Site, from: Notes): object | undefined {
  const [address, credentials] = argsOf(site, 'OIDCOutgoingProxy') ?? []
  if (address === undefined) return undefined
  const url = `http://${address.replace(/^http:\/\//, '')}`
  if (!URL.canParse(url)) {
    from.decide('OIDCOutgoingProxy', 'write the URL of the proxy as egress_proxy.url')
    return undefined
  }
  if (credentials === undefined) return { url: new URL(url).origin }
  from.changed('OIDCOutgoingProxy', 'the file contains no secret; set the environment variable PROXY_PASSWORD')
  return {
    url: new URL(url).origin,
    username: credentials.replace(/:.*$/s, ''),
    password: { env: 'PROXY_PASSWORD' },
  }
}

function clientSecret(site: Site, from: Notes): object {
  const [program] = /^exec:(.*)$/.exec(valueOf(site, 'OIDCClientSecret') ?? '')?.slice(1) ?? []
  const [, file] = /^\/bin\/cat (\/\S+)$/.exec(program?.trim() ?? '') ?? []
  if (file !== undefined) return { file }
  from.changed(
    'OIDCClientSecret',
    program === undefined
      ? 'the file contains no secret; set the environment variable CLIENT_SECRET'
      : 'the gateway runs no program; set the environment variable CLIENT_SECRET to what it prints',
  )
  return { env: 'CLIENT_SECRET' }
}

function authMethod(site: Site, from: Notes): string | undefined {
  const method = valueOf(site, 'OIDCProviderTokenEndpointAuth')
  if (method === undefined || method === 'client_secret_basic') return undefined
  if (method === 'client_secret_post' || method === 'client_secret_jwt') return method
  from.lost(
    'OIDCProviderTokenEndpointAuth',
    `${method}: see docs/provider-client.md for keys and certificates of the client`,
  )
  return undefined
}

function authorizationParams(site: Site): object {
  const given = new URLSearchParams(valueOf(site, 'OIDCAuthRequestParams') ?? '')
  return given.size === 0 ? {} : { authorization_params: Object.fromEntries(given) }
}

function algorithm(site: Site, from: Notes): string | undefined {
  const wanted = valueOf(site, 'OIDCIDTokenSignedResponseAlg')
  if (wanted === undefined || signingAlgorithms.some((known) => known === wanted)) return wanted
  from.lost('OIDCIDTokenSignedResponseAlg', `${wanted} can be forged; the gateway accepts RS256`)
  return undefined
}

/** Translates the settings of sessions, Redis and the cookie to `session:`. */
export function translateSession(site: Site, from: Notes): object {
  return { ...store(site, from), ...times(site, from), cookie: cookie(site, from) }
}

function store(site: Site, from: Notes): object {
  const isRedis = valueOf(site, 'OIDCCacheType')?.toLowerCase() === 'redis'
  from.changed('OIDCCacheType', isRedis ? inRedis : inMemory)
  if (!isRedis) return { store: 'memory' }
  const [server = ''] = argsOf(site, 'OIDCRedisCacheServer') ?? []
  let url = `redis://${server.includes(':') ? server : `${server}:6379`}`
  try {
    parseRedisUrl(url)
  } catch {
    from.decide('OIDCRedisCacheServer', 'write the address of Redis as session.store.redis.url')
    url = `redis://${placeholder}:6379`
  }
  const hasPassword = valueOf(site, 'OIDCRedisCachePassword') !== undefined
  if (hasPassword)
    from.changed('OIDCRedisCachePassword', 'the file contains no secret; set the environment variable REDIS_PASSWORD')
  const database = Number(valueOf(site, 'OIDCRedisCacheDatabase') ?? 0)
  return {
    keys: [{ env: 'SESSION_KEY' }],
    store: {
      redis: {
        url: database > 0 ? `${url}/${database}` : url,
        username: valueOf(site, 'OIDCRedisCacheUsername'),
        password: hasPassword ? { env: 'REDIS_PASSWORD' } : undefined,
      },
    },
  }
}

function times(site: Site, from: Notes): object {
  const seconds = (name: string, fallback: number) => {
    const given = Number(valueOf(site, name) ?? fallback)
    return Number.isFinite(given) && given > 0 ? given * 1000 : undefined
  }
  const [idle, absolute] = [seconds('OIDCSessionInactivityTimeout', 300), seconds('OIDCSessionMaxDuration', 28_800)]
  const longest = absolute ?? 12 * 3_600_000
  if (absolute === undefined)
    from.changed(
      'OIDCSessionMaxDuration',
      'sessions end after 12h (session.absolute_timeout); mod_auth_openidc took the time from the ID Token',
    )
  return { idle_timeout: durationText(Math.min(idle ?? 300_000, longest)), absolute_timeout: durationText(longest) }
}

function cookie(site: Site, from: Notes): object | undefined {
  const name = valueOf(site, 'OIDCCookie')?.replace(/^__(?:Host|Secure)-/i, '')
  const isValidName = name !== undefined && /^(?!__)[\w-]{1,64}$/.test(name)
  const isStrict = valueOf(site, 'OIDCCookieSameSite')?.toLowerCase() === 'strict'
  if (valueOf(site, 'OIDCCookieSameSite')?.toLowerCase() === 'none')
    from.lost(
      'OIDCCookieSameSite',
      'SameSite is Lax, because with SameSite=None other sites could send requests with the session',
    )
  const given = valueOf(site, 'OIDCCookieDomain')
  const domain = usableDomain([given ?? ''], site.externalUrl)
  if (given !== undefined)
    from[domain !== undefined ? 'changed' : 'lost'](
      'OIDCCookieDomain',
      domain !== undefined
        ? `the hosts of ${domain} share one session (session.cookie.domain)`
        : 'it does not contain the host of external_url, or that is not https',
    )
  if (!isValidName && !isStrict && domain === undefined) return undefined
  return {
    ...(isValidName && { name }),
    ...(domain !== undefined && { domain }),
    ...(isStrict && { same_site: 'strict' }),
  }
}
