import { randomBytes } from 'node:crypto'
import { below } from '../document/report.ts'
import type { SessionConfig, StoreConfig } from '../model.ts'
import type { SessionSettings } from '../settings.ts'
import { type Building, present, readDuration } from './building.ts'
import { buildRedis } from './redis.ts'
import { readSecret } from './secrets.ts'

const keyBytes = 32

/** `secure`: browsers reach the gateway over https. */
export function buildSession(
  written: SessionSettings,
  at: string,
  building: Building & { readonly secure: boolean },
): SessionConfig {
  const { report, secure } = building
  const store = buildStore(written.store, below(at, 'store'), building)
  const duration = (
    name: 'idle_timeout' | 'absolute_timeout' | 'refresh_before' | 'store_outage_grace',
    from: string,
    to: string,
  ) => readDuration(written[name], below(at, name), from, to, report)
  return {
    keys: readKeys(written, at, store, building),
    isKeyGenerated: written.keys === undefined && store.kind === 'memory',
    store,
    idleTimeoutMs: duration('idle_timeout', '1s', '365d'),
    absoluteTimeoutMs: duration('absolute_timeout', '1s', '365d'),
    refreshBeforeMs: duration('refresh_before', '0s', '1h'),
    pollUserinfoMs:
      written.poll_userinfo === undefined
        ? undefined
        : readDuration(written.poll_userinfo, below(at, 'poll_userinfo'), '10s', '1d', report),
    storeOutageGraceMs: duration('store_outage_grace', '0s', '5m'),
    cookie: {
      // Browsers accept a cookie with this prefix only with Secure and from this host, so that no
      // sibling site can set one (RFC 6265bis §4.1.3.2).
      name: secure ? `__Host-${written.cookie.name}` : written.cookie.name,
      secure,
      sameSite: written.cookie.same_site,
    },
  }
}

function readKeys(written: SessionSettings, at: string, store: StoreConfig, building: Building): readonly Buffer[] {
  const { env, report } = building
  if (written.keys !== undefined)
    return present(written.keys).flatMap(([index, secret]) => {
      const place = below(below(at, 'keys'), index)
      const text = readSecret(secret, place, env, report)
      return text === undefined ? [] : report.parse(place, [], () => [decodeKey(text)], generateHint)
    })
  // Sessions in the memory of a process need no key after it ends.
  if (store.kind === 'memory') return [randomBytes(keyBytes)]
  report.missing(
    below(at, 'keys'),
    'is missing: what is stored in Redis is sealed with a key that all replicas share',
    'for example keys: [{ file: /run/secrets/session_key }]; openssl rand -base64 32 makes a key',
  )
  return []
}

const generateHint = 'openssl rand -base64 32 makes a key'

function decodeKey(text: string): Buffer {
  const key = /^([\da-f]{2})+$/i.test(text)
    ? Buffer.from(text, 'hex')
    : /^([\w-]+|[A-Za-z\d+/]+)={0,2}$/.test(text)
      ? Buffer.from(text, 'base64')
      : undefined
  if (key?.length === keyBytes) return key
  const found = key === undefined ? 'it is neither' : `it has ${key.length}`
  throw new SyntaxError(`must be ${keyBytes} bytes in base64, base64url or hex; ${found}`)
}

const memoryDefaults = { max_sessions: 100_000 }

function buildStore(written: SessionSettings['store'], at: string, building: Building): StoreConfig {
  if (typeof written === 'object' && written.redis !== undefined)
    return buildRedis(written.redis, below(at, 'redis'), building)
  const { max_sessions } = (typeof written === 'object' ? written.memory : undefined) ?? memoryDefaults
  return { kind: 'memory', maxSessions: max_sessions }
}
