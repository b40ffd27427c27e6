import { randomBytes } from 'node:crypto'
import { parseCookieDomain } from '../addresses.ts'
import { below } from '../document/report.ts'
import type {
  DeviceBindingConfig,
  MaxPerPersonConfig,
  SessionConfig,
  SessionCookieConfig,
  StoreConfig,
} from '../model.ts'
import type { SessionDeviceBindingSettings, SessionSettings } from '../settings.ts'
import { type BuildContext, present, readDuration } from './build-context.ts'
import { buildRedis } from './redis.ts'
import { readSecret } from './secrets.ts'

const keyBytes = 32

/** `secure`: browsers reach the gateway over https. */
export function buildSession(
  settings: SessionSettings,
  at: string,
  context: BuildContext & { readonly secure: boolean },
): SessionConfig {
  const { report } = context
  const store = buildStore(settings.store, below(at, 'store'), context)
  const duration = (
    name: 'idle_timeout' | 'absolute_timeout' | 'refresh_before' | 'store_outage_grace',
    from: string,
    to: string,
  ) => readDuration(settings[name], below(at, name), from, to, report)
  return {
    keys: readKeys(settings, at, store, context),
    isKeyGenerated: settings.keys === undefined && store.kind === 'memory',
    store,
    idleTimeoutMs: duration('idle_timeout', '1s', '365d'),
    absoluteTimeoutMs: duration('absolute_timeout', '1s', '365d'),
    refreshBeforeMs: duration('refresh_before', '0s', '1h'),
    pollUserinfoMs:
      settings.poll_userinfo === undefined
        ? undefined
        : readDuration(settings.poll_userinfo, below(at, 'poll_userinfo'), '10s', '1d', report),
    storeOutageGraceMs: duration('store_outage_grace', '0s', '5m'),
    maxPerPerson: buildMaxPerPerson(settings),
    page: settings.page,
    cookie: buildCookie(settings.cookie, below(at, 'cookie'), context),
    deviceBinding: buildDeviceBinding(settings, below(at, 'device_binding'), context),
  }
}

function buildMaxPerPerson({ max_per_person: setting }: SessionSettings): MaxPerPersonConfig | undefined {
  if (typeof setting === 'number') return { count: setting, whenExceeded: 'end_oldest' }
  const count = setting?.count
  return setting === undefined || count === undefined ? undefined : { count, whenExceeded: setting.when_exceeded }
}

export type DeviceBindingMode = SessionDeviceBindingSettings['mode']

/** `device_binding` of the session, written with or without an object. */
export function deviceBindingMode({ device_binding }: SessionSettings): DeviceBindingMode {
  return typeof device_binding === 'object' ? device_binding.mode : (device_binding as DeviceBindingMode)
}

/** What the schema fills in when the setting is an object. */
const bindingDefaults = { cookie_lifetime: '5m', registration_grace: '1m', on_misuse: 'refuse' } as const

function buildDeviceBinding(
  settings: SessionSettings,
  at: string,
  { report, secure }: BuildContext & { readonly secure: boolean },
): DeviceBindingConfig {
  const mode = deviceBindingMode(settings)
  const { device_binding } = settings
  if (mode === 'required' && !secure)
    report.error(at, 'needs an https external_url: browsers bind sessions over https only', 'set it to when_supported')
  const isOfDomain = settings.cookie.domain !== undefined
  if (mode === 'required' && isOfDomain)
    report.error(
      at,
      'cannot be met with session.cookie.domain: a browser binds a session to one host',
      'remove one of them',
    )
  const { cookie_lifetime, registration_grace, on_misuse } =
    typeof device_binding === 'object' ? device_binding : bindingDefaults
  return {
    isOn: mode !== 'off' && secure && !isOfDomain,
    isRequired: mode === 'required',
    cookieLifetimeMs: readDuration(cookie_lifetime, below(at, 'cookie_lifetime'), '1m', '1h', report),
    registrationGraceMs: readDuration(registration_grace, below(at, 'registration_grace'), '10s', '10m', report),
    onMisuse: on_misuse,
  }
}

function buildCookie(
  settings: SessionSettings['cookie'],
  at: string,
  { report, secure }: BuildContext & { readonly secure: boolean },
): SessionCookieConfig {
  const { domain: text } = settings
  const domain =
    text === undefined ? undefined : report.parse(below(at, 'domain'), undefined, () => parseCookieDomain(text))
  // Browsers accept a cookie with the prefix __Host- only with Secure and from this host, so that
  // no sibling site can set one (RFC 6265bis §4.1.3.2). With a domain, only __Secure- is possible.
  const prefix = domain === undefined ? '__Host-' : '__Secure-'
  return {
    name: secure ? `${prefix}${settings.name}` : settings.name,
    ...(domain !== undefined && { domain }),
    secure,
    sameSite: settings.same_site,
  }
}

function readKeys(settings: SessionSettings, at: string, store: StoreConfig, context: BuildContext): readonly Buffer[] {
  const { env, report } = context
  if (settings.keys !== undefined)
    return present(settings.keys).flatMap(([index, secret]) => {
      const place = below(below(at, 'keys'), index)
      const text = readSecret(secret, place, env, report)
      return text === undefined ? [] : report.parse(place, [], () => [decodeKey(text)], generateHint)
    })
  // The memory store is lost with the process, so a new key for each start is sufficient.
  if (store.kind === 'memory') return [randomBytes(keyBytes)]
  report.missing(
    below(at, 'keys'),
    'is missing: the gateway encrypts sessions in Redis with a key that all replicas share',
    'for example keys: [{ file: /run/secrets/session_key }]; create a key with openssl rand -base64 32',
  )
  return []
}

const generateHint = 'create a key with openssl rand -base64 32'

function decodeKey(text: string): Buffer {
  const key = /^([\da-f]{2})+$/i.test(text)
    ? Buffer.from(text, 'hex')
    : /^([\w-]+|[A-Za-z\d+/]+)={0,2}$/.test(text)
      ? Buffer.from(text, 'base64')
      : undefined
  if (key?.length === keyBytes) return key
  const found = key === undefined ? 'it has another format' : `it has ${key.length}`
  throw new SyntaxError(`must be ${keyBytes} bytes in base64, base64url or hex; ${found}`)
}

const memoryDefaults = { max_sessions: 100_000 }

function buildStore(settings: SessionSettings['store'], at: string, context: BuildContext): StoreConfig {
  if (typeof settings === 'object' && settings.redis !== undefined)
    return buildRedis(settings.redis, below(at, 'redis'), context)
  const { max_sessions } = (typeof settings === 'object' ? settings.memory : undefined) ?? memoryDefaults
  return { kind: 'memory', maxSessions: max_sessions }
}
