import type { UpstreamConfig } from '../config/model/upstream.ts'
import { clientOf } from '../core/addresses.ts'
import { BoundedMap } from '../core/bounded-map.ts'
import { type Clock, isWithin } from '../core/clock.ts'
import type { ErrorCode } from '../core/error-codes.ts'
import { GatewayError, reason } from '../core/errors.ts'
import type { SessionId, SessionKey } from '../core/names.ts'
import { SingleFlight } from '../core/single-flight.ts'
import type { Log } from '../observe/log.ts'
import { changeSession, type SessionsOfAudience } from '../session/live/live-sessions.ts'
import {
  type AccessKey,
  type Principal,
  sessionIdFromAccessKey,
  sessionKey,
  type StoredSession,
} from '../session/record/record.ts'
import { type AccountLimits, provenKey } from './service-accounts.ts'
import type { Upkeep } from './upkeep.ts'

/** How often the last use of a key is written, in ms: from the same address, and from another. */
const noteEveryMs = 10 * 60_000
const noteAddressEveryMs = 60_000
/** How long a key that was not found is not searched again, in ms, and how many are remembered. */
const rememberMs = 60_000
const maxRemembered = 10_000

export type KeyIdentity =
  | (Principal & {
      readonly kind: 'accepted'
      readonly session: StoredSession
      readonly clockToleranceMs: number
    })
  | { readonly kind: 'refused'; readonly why: string }
  | { readonly kind: 'limited'; readonly why: string; readonly waitMs: number }
  | { readonly kind: 'unavailable'; readonly code: ErrorCode; readonly why: string }

/** A provider whose people make keys. */
export interface RealmOfKeys {
  readonly clockToleranceMs: number
  readonly sessions: Pick<SessionsOfAudience, 'findInMemory' | 'find' | 'read' | 'replace'>
  readonly upkeep: Pick<Upkeep, 'fresh'>
}

/** A request with a key, for an upstream. */
interface KeyUse {
  readonly upstream: Pick<UpstreamConfig, 'name' | 'keys'>
  /** The realms of the upstream. */
  readonly realms: readonly RealmOfKeys[]
  /** The address of the client. */
  readonly address: string
}

export interface AccessKeysParts {
  readonly clock: Clock
  /** Those of wrong secrets of service accounts. */
  readonly limits: Pick<AccountLimits, 'perClient' | 'proven' | 'rejected'>
  readonly log: Log
}

/** Finds who has made the key of a request, and keeps its tokens and claims fresh. */
export class AccessKeys {
  readonly #parts: AccessKeysParts
  readonly #noting = new SingleFlight<SessionKey, unknown>()
  /** By upstream. A program repeats a key that has ended, which counts once as wrong. */
  readonly #notFound: BoundedMap<string, true>

  constructor(parts: AccessKeysParts) {
    this.#parts = parts
    this.#notFound = new BoundedMap('wrong_keys', maxRemembered, { lifetimeMs: rememberMs, clock: parts.clock })
  }

  /** Returns no promise when the key is in memory and needs no refresh. */
  identify(text: string, use: KeyUse): KeyIdentity | Promise<KeyIdentity> {
    const id = sessionIdFromAccessKey(text)
    if (id === undefined) return { kind: 'refused', why: 'it is not a complete key: copy all of it' }
    const key = sessionKey(id)
    for (const realm of use.realms) {
      const session = realm.sessions.findInMemory(key)
      if (session !== undefined) return this.#identityOf(session, realm, use)
    }
    return this.#find(id, use).catch(unavailable)
  }

  async #find(id: SessionId, use: KeyUse): Promise<KeyIdentity> {
    const { perClient, proven, rejected } = this.#parts.limits
    const [key, client] = [sessionKey(id), clientOf(use.address)]
    const asked = `${use.upstream.name} ${key}`
    if (this.#notFound.has(asked)) return ended
    // Wrong keys of others at this address do not lock out one that was right.
    const waitMs = proven.has(provenKey(key, client)) ? 0 : perClient.waitMs(client)
    if (waitMs > 0) {
      rejected('wrong keys, for each client', client)
      return { kind: 'limited', why: 'too many wrong keys for one client', waitMs }
    }
    for (const realm of use.realms) {
      const session = await realm.sessions.find(key)
      if (session !== undefined) return this.#identityOf(session, realm, use)
    }
    perClient.take(client)
    this.#notFound.set(asked, true)
    return ended
  }

  #identityOf(
    session: StoredSession,
    realm: RealmOfKeys,
    { upstream, address }: KeyUse,
  ): KeyIdentity | Promise<KeyIdentity> {
    const { key, created_at } = session.record
    if (key?.upstream !== upstream.name) return { kind: 'refused', why: 'the key is for another upstream' }
    // The setting may have been longer when the person made the key.
    if (this.#parts.clock.now() >= created_at + (upstream.keys?.forAtMostMs ?? 0))
      return { kind: 'refused', why: 'the key is older than keys.for_at_most' }
    const fresh = realm.upkeep.fresh(session)
    const accepted = (renewed: StoredSession | undefined): KeyIdentity => {
      if (renewed === undefined) return ended
      this.#noteRight(renewed, address)
      this.#noteUse(renewed, key, realm, address)
      const { record } = renewed
      return { kind: 'accepted', record, session: renewed, clockToleranceMs: realm.clockToleranceMs }
    }
    return fresh instanceof Promise ? fresh.then(accepted).catch(unavailable) : accepted(fresh)
  }

  #noteRight({ key }: StoredSession, address: string): void {
    const { proven } = this.#parts.limits
    const name = provenKey(key, clientOf(address))
    if (!proven.has(name)) proven.set(name, true)
  }

  /** The request does not wait for it. Without the store, the next request notes it. */
  #noteUse({ key: at }: StoredSession, { used }: AccessKey, { sessions }: RealmOfKeys, address: string): void {
    const now = this.#parts.clock.now()
    const everyMs = used?.address === address ? noteEveryMs : noteAddressEveryMs
    if (used !== undefined && isWithin(everyMs, used.at, now)) return
    if (this.#noting.has(at)) return
    this.#noting
      .run(at, () =>
        changeSession(at, sessions, ({ key, ...record }) => ({
          ...record,
          ...(key && { key: { ...key, used: { at: now, address } } }),
        })),
      )
      .catch((error: unknown) => this.#parts.log.debug('key.use_not_noted', { reason: reason(error) }))
  }
}

const ended: KeyIdentity = { kind: 'refused', why: 'there is no such key, or it has ended' }

function unavailable(error: unknown): KeyIdentity {
  if (!(error instanceof GatewayError)) throw error
  const code = error.status === 503 ? error.code : 'ERR_PROVIDER_UNAVAILABLE'
  return { kind: 'unavailable', code, why: error.message }
}
