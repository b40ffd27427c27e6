import { parseRedisUrl } from '../config/build/redis.ts'
import { signingAlgorithms } from '../config/model/provider.ts'
import { placeholder } from '../config/placeholder.ts'
import { durationText } from '../config/quantities.ts'
import { argsOf, issuerOf, type Site, valueOf } from './apache-site.ts'
import type { Notes } from './notes.ts'
import { inMemory, usableDomain } from './session-settings.ts'
import { claimPath } from './written-config.ts'

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
  from.changed(
    'OIDCCacheType',
    isRedis
      ? 'data in Redis is encrypted; set the environment variable SESSION_KEY to the same value for all replicas (create it with openssl rand -base64 32)'
      : inMemory,
  )
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

const standardClaims = ['sub', 'email', 'name', 'preferred_username']

/** Translates what Apache tells the application about the person. */
export function translateHeaders(site: Site, from: Notes): object {
  const [as = 'both'] = argsOf(site, 'OIDCPassClaimsAs') ?? []
  const listed = argsOf(site, 'OIDCWhiteListedClaims')
  const excluded = new Set(argsOf(site, 'OIDCBlackListedClaims') ?? [])
  const join = valueOf(site, 'OIDCClaimDelimiter') ?? ','
  const prefix = valueOf(site, 'OIDCClaimPrefix') ?? 'OIDC_CLAIM_'
  const passes = /^(?:both|headers)$/i.test(as) && prefix !== ''
  if (prefix === '')
    from.lost(
      'OIDCClaimPrefix',
      'with an empty prefix, clients could choose claims that a person lacks; name each header in headers',
    )
  if (passes)
    from.changed(
      'OIDCPassClaimsAs',
      `${listed === undefined ? 'mod_auth_openidc sends all claims; the file has those that most applications read: add those that yours needs to headers' : 'only these claims are sent'}; names have "-" in place of "_", and the access token is not sent`,
    )
  const claims = passes ? (listed ?? standardClaims).filter((claim) => !excluded.has(claim)) : []
  const byClaim = claims.map(
    (claim) => [`${prefix}${claim}`.replaceAll(/[^A-Za-z0-9-]/g, '-'), { claim: claimPath(claim), join }] as const,
  )
  const idToken = argsOf(site, 'OIDCPassIDTokenAs')?.some((each) => /serialized/i.test(each)) ?? false
  if (idToken)
    from.lost(
      'OIDCPassIDTokenAs',
      'OIDC_id_token is not sent; if the application accepts it as a bearer token, write headers: { Authorization: { bearer: id_token } }',
    )
  return { ...Object.fromEntries(byClaim), ...remoteUserHeader(site, from), ...requestHeaders(site, from) }
}

function remoteUser({ user }: Site): object {
  const { claim, suffix = '' } = user
  const value = suffix === '' ? { claim: claimPath(claim) } : { template: `{${claimPath(claim)}}${suffix}` }
  // mod_auth_openidc denies people without the claim.
  return { ...value, required: true }
}

function remoteUserHeader(site: Site, from: Notes): object {
  const name = valueOf(site, 'OIDCAuthNHeader')
  if (name !== undefined) return { [name]: remoteUser(site) }
  if (site.user.claim !== 'sub')
    from.changed(
      'OIDCRemoteUserClaim',
      `people need the claim ${site.user.claim}; REMOTE_USER becomes the header X-Remote-User`,
    )
  return { 'X-Remote-User': remoteUser(site) }
}

/** `RequestHeader set NAME VALUE`, where VALUE is text, or a variable of mod_auth_openidc. */
function requestHeaders(site: Site, from: Notes): object {
  const directives = site.directives.flatMap((each) => (each.name === 'requestheader' ? [each.args] : []))
  return Object.assign(
    {},
    ...directives.map(([action = '', name = '', value = '', ...more]): object => {
      const shown = `RequestHeader ${action} ${name}`
      const [, variable] = /^(?:expr=)?%\{(?:env:|reqenv:)?(\w+)\}[es]?$/i.exec(value) ?? []
      const isSet = /^set(?:ifempty)?$/i.test(action) && more.every((word) => word.startsWith('env='))
      if (/^x-forwarded-/i.test(name)) from.unneeded(shown, 'the gateway sends X-Forwarded-Proto, -Host and -For')
      else if (/^unset$/i.test(action))
        from.unneeded(
          shown,
          'the gateway removes the identity headers of clients; for another header, write headers with value: ""',
        )
      else if (isSet && variable === 'REMOTE_USER') return { [name]: remoteUser(site) }
      else if (isSet && variable?.startsWith('OIDC_CLAIM_') === true)
        return { [name]: { claim: claimPath(variable.slice(11)), join: ',' } }
      else if (isSet && /^[^%]*$/.test(value) && more.length === 0 && !/authorization|secret|token|key/i.test(name))
        return { [name]: { value } }
      else from.lost(shown, 'its value is not translated; write it below headers of the upstream')
      return {}
    }),
  ) as object
}
