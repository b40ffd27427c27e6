import { randomBytes } from 'node:crypto'
import { parseCookieDomain } from '../addresses.ts'
import { below } from '../document/report.ts'
import type { DeviceBindingConfig, SessionConfig, SessionCookieConfig, StoreConfig } from '../model/session.ts'
import type { SessionSettings, SessionStoreSettings } from '../settings.ts'
import { type BuildContext, present } from './build-context.ts'
import { buildRedis } from './redis.ts'
import { readSecret } from './secrets.ts'

const keyBytes = 32

/** `secure`: browsers reach the gateway over https. */
export function buildSession(
  settings: SessionSettings,
  at: string,
  context: BuildContext & { readonly secure: boolean },
): SessionConfig {
  const store = buildStore(settings.store, below(at, 'store'), context)
  const { maxPerPerson } = settings
  return {
    ...settings,
    keys: readKeys(settings, at, store, context),
    isKeyGenerated: settings.keys === undefined && store.kind === 'memory',
    store,
    maxPerPerson: maxPerPerson?.count === undefined ? undefined : { ...maxPerPerson, count: maxPerPerson.count },
    cookie: buildCookie(settings.cookie, below(at, 'cookie'), context),
    deviceBinding: buildDeviceBinding(settings, below(at, 'device_binding'), context),
  }
}

function buildDeviceBinding(
  settings: SessionSettings,
  at: string,
  { report, secure }: BuildContext & { readonly secure: boolean },
): DeviceBindingConfig {
  const { mode, ...others } = settings.deviceBinding
  if (mode === 'required' && !secure)
    report.error(at, 'needs an https external_url: browsers bind sessions over https only', 'set it to when_supported')
  const isOfDomain = settings.cookie.domain !== undefined
  if (mode === 'required' && isOfDomain)
    report.error(
      at,
      'cannot be met with session.cookie.domain: a browser binds a session to one host',
      'remove one of them',
    )
  return { ...others, isOn: mode !== 'off' && secure && !isOfDomain, isRequired: mode === 'required' }
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
    sameSite: settings.sameSite,
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

function buildStore({ memory, redis }: SessionStoreSettings, at: string, context: BuildContext): StoreConfig {
  if (redis !== undefined) return buildRedis(redis, below(at, 'redis'), context)
  return { kind: 'memory', maxSessions: memory?.maxSessions ?? 0 }
}
