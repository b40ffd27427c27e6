import type { Clock } from '../../src/core/clock.ts'
import type { KeptKey, SessionKey } from '../../src/core/names.ts'
import { Keyring } from '../../src/core/seal.ts'
import { Challenges } from '../../src/device/proof.ts'
import { signingKeyPurpose } from '../../src/identity/signed/signing-key.ts'
import { KeptRequests } from '../../src/kept-forms/kept-requests.ts'
import { RotatingKeys } from '../../src/keys/rotating-keys.ts'
import { Metrics } from '../../src/observe/metrics.ts'
import { BoundCookie, PersonCookie, RefusedSignIns } from '../../src/session/cookies/gateway-cookies.ts'
import { SessionCookie } from '../../src/session/cookies/session-cookie.ts'
import { LogoutJobs } from '../../src/session/live/logout-jobs.ts'
import { audienceOf, type SessionRecord } from '../../src/session/record/record.ts'
import { StreamRecord } from '../../src/signals/keep-stream.ts'
import { recorder } from '../session/redis-stores.ts'
import { memoryStore } from '../support/memory-store.ts'

/** When the fixtures were written, and when a test reads them. */
export const now = Date.UTC(2026, 10, 27)
export const audience = audienceOf({ issuer: 'https://id.example.com', client_id: 'orders' })
export const key = 'AAAAAAAAAAAAAAAAAAAAAAAA:BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB' as SessionKey
export const secrets: readonly Buffer[] = [Buffer.alloc(32, 35)]

/** One string for each format that a gateway writes: bytes in base64, or text. */
export interface Formats {
  readonly session: string
  readonly compressedSession: string
  readonly logoutJob: string
  readonly keptHead: string
  readonly keptParts: readonly string[]
  readonly keptKey: KeptKey
  readonly keptCookie: string
  readonly signingKeys: string
  readonly eventStream: string
  readonly emailEnding: string
  readonly state: string
  readonly personCookie: string
  readonly refusedCookie: string
  readonly boundCookie: string
  readonly deviceChallenge: string
  readonly deviceIdentifier: string
  readonly notices: Readonly<Record<'changed' | 'ended' | 'raised' | 'missed' | 'confirmation', string>>
}

const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

/**
 * Every member of a record, with tokens that are JWTs. `groups` decides whether it is compressed.
 */
export function sampleRecord(groups: number): SessionRecord {
  const claims = { sub: 'jane', groups: Array.from({ length: groups }, (_, n) => `team-${n}`) }
  const token = `${part({ alg: 'RS256' })}.${part({ ...claims, iss: 'https://id.example.com' })}.${'c2ln'.repeat(80)}`
  return {
    ...{ iss: 'https://id.example.com', sub: 'jane', sid: 'one', origin: 'https://orders.example.com', claims },
    ...{ created_at: now, absolute_expires_at: now + 3_600_000, userinfo_read_at: now },
    tokens: {
      ...{ access_token: token, refresh_token: 'opaque', id_token: token, obtained_at: now },
      access_token_expires_at: now + 300_000,
    },
    authentication: { at: now, acr: 'mfa', amr: ['otp'] } as never,
    cookies: { wiki: [{ name: 'sid', value: '1', domain: 'a.example', hostOnly: true, path: '/' }] },
    signed_in_with: { address: '192.0.2.1', user_agent: 'Firefox' },
    device: { alg: 'ES256', jwk: { kty: 'EC', crv: 'P-256', x: 'x', y: 'y' }, bound_at: now },
  }
}

/** The readers and writers of a gateway, with an empty store in memory. */
export function gatewayParts() {
  const clock: Clock = { now: () => now }
  const newer: string[] = []
  const keyring = new Keyring(secrets, (kind, format) => void newer.push(`${kind} ${format}`))
  const store = memoryStore({ maxSessions: 100, clock })
  const cookie = new SessionCookie({ name: 'gatehouse', secure: false, sameSite: 'lax' })
  const log = recorder()
  const common = { keyring, audience, clock, store, cookie }
  const calling = { paths: [], passFirst: false, cookies: [], call: { method: 'POST', target: '/', timeoutMs: 1 } }
  const upstreams = [{ name: 'wiki', headers: [], rules: [], logout: calling }] as never
  const config = { rotateEveryMs: 90 * 86_400_000, lifetimeMs: 60_000 } as never
  return {
    ...{ keyring, store, log, newer },
    jobs: new LogoutJobs({ keyring, audience, upstreams }),
    kept: new KeptRequests({ maxSizeBytes: 1_000, keepForMs: 600_000 } as never, {
      ...common,
      store: store.kept,
      metrics: new Metrics(),
    }),
    signingKeys: new RotatingKeys({
      ...common,
      address: 'https://orders.example.com/.gatehouse/',
      purpose: signingKeyPurpose,
      config,
      algorithms: new Set(['ES256'] as const),
      log,
    }),
    stream: new StreamRecord(common),
    person: new PersonCookie({ ...common, absoluteTimeoutMs: 3_600_000 }),
    refused: new RefusedSignIns(common),
    bound: new BoundCookie({ ...common, config: { isOn: true, cookieLifetimeMs: 300_000 } as never }),
    challenges: new Challenges(common),
  }
}
