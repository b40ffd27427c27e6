import { isObject, type JsonObject, ownMember, parseRedisUrl, placeholder } from '../../../src/entries/import.ts'
import { goDurationMs } from '../common/go-duration.ts'
import { Notes, withoutTranslationOf } from '../common/notes.ts'
import { type Outcome, outcomesFor, peopleWith } from '../common/outcomes.ts'
import { inMemory, inRedis, sessionTimes, usableDomain } from '../common/session-settings.ts'
import { type Translated, translatedFile } from '../common/translated-file.ts'
import {
  eachNamed,
  freeName,
  type GivenText,
  plainListen,
  untilDecided,
  type WrittenConfig,
  type WrittenUpstream,
} from '../common/written-config.ts'
import { yamlMap } from '../common/yaml-map.ts'
import { criteriaOf } from './pomerium-policy.ts'
import {
  admits,
  HostDenials,
  inOrder,
  insteadOfRegex,
  notePrefixes,
  readRoutes,
  type Route,
  upstreamFor,
} from './pomerium-routes.ts'

/**
 * Translates `config.yaml` of Pomerium, and notes the differences. What is unknown and may restrict
 * access denies all people until an operator decides.
 * @throws {SyntaxError} when a text is invalid; the message quotes no value
 */
export function translatePomerium(texts: readonly GivenText[], externalUrl: string | undefined): Translated {
  const from = new Notes()
  const settings: JsonObject = Object.assign({}, ...eachNamed(texts, yamlMap)) as JsonObject
  const denials = new HostDenials(from)
  const given = [settings['routes'] ?? settings['policy'] ?? []].flat()
  const written = readRoutes(given, from, denials)
  const origin = externalUrl ?? written.find((each) => !each.origin.includes('*'))?.origin
  if (origin === undefined || written.length === 0) throw new SyntaxError(withoutOrigin(given, written))
  const routes = inOrder(written)
  for (const name of Object.keys(settings)) if (!read.has(name)) from.untranslated(name, options.get(name))
  notePrefixes(routes, denials)
  noteClientAddresses(routes, settings, denials)
  const upstreams = upstreamsOf(routes, settings, denials, from)
  const session = sessionOf(settings, origin, from)
  const config = {
    version: 1,
    listen: listenOf(settings, upstreams, from),
    external_url: origin,
    provider: providerOf(settings, routes, from),
    session,
    upstreams: untilDecided(upstreams, from.denials),
  }
  return translatedFile(config, outcomesOf(routes), 'Pomerium', from)
}

/** Why there is no upstream or no origin, and what to write. */
function withoutOrigin(given: readonly unknown[], written: readonly Route[]): string {
  if (written.length > 0) return 'each from has a wildcard; name the origin at which people sign in with --url'
  return given.some((route) => isObject(route) && route['regex'] !== undefined)
    ? `all routes with from: https://… have a regex; ${insteadOfRegex}`
    : 'there is no route with from: https://…'
}

/** A policy that compares addresses needs those of the clients, and not that of a proxy. */
function noteClientAddresses(routes: readonly Route[], settings: JsonObject, denials: HostDenials): void {
  const names = ['use_proxy_protocol', 'xff_num_trusted_hops'].filter((name) => Boolean(settings[name]))
  if (names.length === 0) return
  for (const { origin, policy } of routes)
    if (criteriaOf(policy).some(({ name }) => name === 'source_ip'))
      denials.deny(
        origin,
        names.join(', '),
        'source_ip compares the address of the client; write the proxies in trusted_proxies',
      )
}

function upstreamsOf(routes: readonly Route[], settings: JsonObject, denials: HostDenials, from: Notes) {
  const upstreams = Object.create(null) as Record<string, WrittenUpstream>
  for (const route of routes) {
    const isSame = (other: Route) =>
      other.origin === route.origin && (other.path ?? other.prefix) === (route.path ?? route.prefix)
    if (routes.find(isSame) !== route) {
      denials.deny(route.origin, `from: ${route.origin}`, 'two routes have the same path; decide which upstream it has')
      continue
    }
    const base = new URL(route.origin).hostname.split('.')[0]?.replace(/^[^a-z]+/i, '') ?? ''
    const part = (route.path ?? route.prefix).replaceAll(/[^\w-]+/g, '-').replaceAll(/^-|-$/g, '')
    const wanted = [base === '' ? 'app' : base, ...(part === '' ? [] : [part])].join('-')
    const name = freeName(wanted, (each) => upstreams[each] !== undefined)
    // Otherwise, an upstream would serve hosts that no route names.
    upstreams[name] = { external_url: route.origin, ...upstreamFor(route, settings, from) }
  }
  return Object.fromEntries(
    Object.entries(upstreams).map(([name, upstream]) => [
      name,
      untilDecided({ upstream }, denials.at(upstream.external_url ?? '')).upstream ?? upstream,
    ]),
  )
}

const issuers: Readonly<Record<string, string>> = {
  google: 'https://accounts.google.com',
  gitlab: 'https://gitlab.com',
}

function providerOf(settings: JsonObject, routes: readonly Route[], from: Notes): object {
  const text = (name: string) => (settings[name] === undefined ? undefined : String(settings[name]))
  const provider = text('idp_provider') ?? ''
  const issuer = text('idp_provider_url') ?? ownMember(issuers, provider)
  if (issuer === undefined)
    from.decide(
      'idp_provider',
      `write the issuer of ${provider === '' ? 'the hosted service, or of a provider of your own,' : provider} as provider.issuer; a provider without ID Tokens needs more: docs/providers/oauth2.md`,
    )
  const client_id = text('idp_client_id')
  if (client_id === undefined)
    from.decide('idp_client_id', 'write the client ID of the gateway at the provider as provider.client_id')
  const file = text('idp_client_secret_file')
  if (file === undefined)
    from.changed('idp_client_secret', 'the file contains no secret; set the environment variable CLIENT_SECRET')
  const scopes = [settings['idp_scopes'] ?? []].flat().flatMap((each) => String(each).split(/[\s,]+/))
  const params = isObject(settings['idp_request_params']) ? settings['idp_request_params'] : undefined
  const hosts = [...new Set(routes.map(({ origin }) => `${origin}/.gatehouse/callback`))]
  from.changed(
    'authenticate_service_url',
    `each host has its own sign-in; register the redirect URIs ${hosts.join(', ')}; links to /.pomerium/sign_out become /.gatehouse/sign-out`,
  )
  return {
    issuer: issuer ?? `https://${placeholder}.example.com`,
    client_id: client_id ?? placeholder,
    client_secret: file === undefined ? { env: 'CLIENT_SECRET' } : { file },
    scopes:
      scopes.length === 0 ? undefined : ['openid', ...scopes.filter((scope) => scope !== 'openid' && scope !== '')],
    authorization_params:
      params && Object.fromEntries(Object.entries(params).map(([name, value]) => [name, String(value)])),
  }
}

function sessionOf(settings: JsonObject, origin: string, from: Notes): object {
  const expire = goDurationMs(String(settings['cookie_expire'] ?? '14h'))
  const times = sessionTimes(expire, 'cookie_expire', 'Pomerium', from)
  const domain = usableDomain([String(settings['cookie_domain'] ?? '')], origin)
  if (settings['cookie_domain'] !== undefined)
    from[domain !== undefined ? 'changed' : 'lost'](
      'cookie_domain',
      domain !== undefined
        ? `the hosts of ${domain} share one session, and people sign in at ${origin}`
        : 'it does not contain the host of external_url',
    )
  const same_site = settings['cookie_same_site'] === 'strict' ? 'strict' : undefined
  const cookie = domain === undefined && same_site === undefined ? undefined : { domain, same_site }
  return { ...storeOf(settings, from), ...times, cookie }
}

function storeOf(settings: JsonObject, from: Notes): object {
  const type = String(settings['databroker_storage_type'] ?? 'memory')
  if (type !== 'redis') {
    from.changed('databroker_storage_type', inMemory)
    return { store: 'memory' }
  }
  const given = String(settings['databroker_storage_connection_string'] ?? '')
  const url = /^rediss?:/.test(given) && URL.canParse(given) ? new URL(given) : undefined
  from.changed('databroker_storage_type', inRedis)
  let address = `redis://${placeholder}:6379`
  try {
    const text = url === undefined ? '' : `${url.protocol}//${url.host}${url.pathname.replace(/\/$/, '')}`
    parseRedisUrl(text)
    address = text
  } catch {
    from.decide('databroker_storage_connection_string', 'write the address of Redis as session.store.redis.url')
  }
  const hasPassword = url !== undefined && url.password !== ''
  if (hasPassword)
    from.changed(
      'databroker_storage_connection_string',
      'the file contains no secret; set the environment variable REDIS_PASSWORD',
    )
  return {
    keys: [{ env: 'SESSION_KEY' }],
    store: {
      redis: {
        url: address,
        username: url === undefined || url.username === '' ? undefined : url.username,
        password: hasPassword ? { env: 'REDIS_PASSWORD' } : undefined,
      },
    },
  }
}

function listenOf(settings: JsonObject, upstreams: WrittenConfig['upstreams'], from: Notes): unknown {
  const [given] = [settings['certificates'] ?? []].flat().filter(isObject)
  const cert_file = settings['certificate_file'] ?? given?.['cert']
  const key_file = settings['certificate_key_file'] ?? given?.['key']
  const port = /:(\d+)$/.exec(String(settings['address'] ?? ':443'))?.[1] ?? '443'
  if (cert_file !== undefined && key_file !== undefined)
    return { address: `0.0.0.0:${port}`, tls: { cert_file, key_file } }
  if (settings['insecure_server'] !== true)
    from.decide('certificate_file', 'write cert_file and key_file of listen.tls, or let another program terminate TLS')
  return settings['insecure_server'] === true ? `0.0.0.0:${port}` : plainListen(upstreams)
}

/** Options without a setting here, and those that are read above. */
const options = withoutTranslationOf({
  unneeded: {
    'shared_secret shared_secret_file cookie_secret cookie_secret_file':
      'session.keys replaces it, with another key; people sign in once more',
    'signing_key signing_key_file': 'the gateway creates and rotates the keys of signed identities',
    'services installation_id authorize_service_url authorize_service_urls authorize_internal_service_url authenticate_internal_service_url databroker_service_url databroker_service_urls databroker_internal_service_url databroker_raft_bind_address grpc_address grpc_insecure grpc_client_timeout certificate_authority certificate_authority_file override_certificate_name':
      'there is one process, and no such service',
    'cookie_http_only cookie_secure': 'the cookie is always HttpOnly, and Secure with https',
    'envoy_admin_access_log_path envoy_admin_profile_path envoy_admin_address envoy_bind_config_source_address envoy_bind_config_freebind runtime_flags proxy_log_level':
      'there is no Envoy',
    'log_level access_log_fields authorize_log_fields': 'log.level selects the events; audit events name denied people',
  },
  changed: {
    'timeout_read timeout_write timeout_idle default_upstream_timeout':
      'see response_timeout and idle_timeout of an upstream',
    'metrics_address metrics_basic_auth metrics_certificate metrics_certificate_key metrics_certificate_file metrics_certificate_key_file metrics_client_ca metrics_client_ca_file health_check_addr health_check_systemd_disabled debug_address':
      'admin.listen serves /metrics, /live and /ready',
    'tracing_provider tracing_sample_rate otel_exporter_otlp_endpoint': 'see tracing',
    signout_redirect_url: 'after signing out, people see a page of the gateway',
    'skip_xff_append xff_num_trusted_hops': 'write the proxies in front of the gateway in trusted_proxies',
    cookie_name: 'write session.cookie.name, if another program reads it',
    'http_redirect_addr autocert autocert_dir autocert_must_staple autocert_use_staging autocert_email autocert_ca autocert_trusted_ca':
      'another program redirects from http and renews certificates',
  },
  lost: {
    'codec_type blob_storage circuit_breaker_thresholds tls_derive':
      'it is not available for all routes; see docs/configuration.md',
    use_proxy_protocol: 'the gateway reads X-Forwarded-For or Forwarded of trusted_proxies',
    'certificate certificate_key': 'write it to a file, and name that in listen.tls',
    'google_cloud_serverless_authentication_service_account programmatic_redirect_domain_whitelist mcp_allowed_client_id_domains mcp_allowed_as_metadata_domains idp_access_token_allowed_audiences bearer_token_format identity_providers':
      'requests with access tokens are denied: see docs/apis.md',
    'ssh_address ssh_host_key_files ssh_host_keys ssh_user_ca_key_file ssh_user_ca_key ssh_rls_enabled ssh_rls_additional_entries':
      'the gateway serves http and https only',
  },
})

const read = new Set(
  `address authenticate_service_url certificate_file certificate_key_file certificates cookie_domain cookie_expire
  cookie_same_site idp_client_id idp_client_secret idp_client_secret_file idp_provider idp_provider_url idp_request_params
  idp_scopes insecure_server jwt_claims_headers pass_identity_headers policy routes set_response_headers databroker_storage_type
  databroker_storage_connection_string databroker_storage_connection_string_file`.split(/\s+/),
)

function outcomesOf(routes: readonly Route[]): Outcome[] {
  const hosts = [...new Set(routes.map(({ origin }) => new URL(origin).hostname))].filter((host) => !host.includes('*'))
  return hosts.flatMap((host) => {
    const own = routes.filter(({ origin }) => new URL(origin).hostname === host)
    const criteria = own.flatMap(({ policy }) => criteriaOf(policy))
    const requirements = criteria.flatMap(({ requirement }) => (typeof requirement === 'object' ? [requirement] : []))
    const values = requirements.flatMap((each): [string, string][] => {
      if ('email_domains' in each) return each.email_domains.map((domain) => ['email', `person@${domain}`])
      if (!('claim' in each)) return []
      if (each.ends_with !== undefined) return [[each.claim, `x${each.ends_with}`]]
      const text = each.begins_with ?? each.contains
      return [...(each.any_of ?? []), ...(each.none_of ?? []), ...(text === undefined ? [] : [text])].map((value) => [
        each.claim,
        value,
      ])
    })
    const networks = requirements.flatMap((each) => ('networks' in each ? each.networks : []))
    const methods = requirements.flatMap((each) => ('methods' in each ? each.methods : []))
    const patterns = criteria.flatMap((each) => each.patterns ?? [])
    return outcomesFor(
      {
        paths: [
          '/',
          ...own.flatMap(({ path, prefix }) => [
            path ?? prefix,
            `${path ?? prefix}${(path ?? prefix).endsWith('/') ? '' : '/'}x`,
          ]),
          ...patterns.map((each) => each.replaceAll('*', 'x')),
        ],
        methods: [...methods, 'POST'],
        people: peopleWith(values, { email_verified: true }),
        networks,
        host,
      },
      (request) => admits(own, request),
    )
  })
}
