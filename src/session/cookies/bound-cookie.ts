import type { DeviceBindingConfig } from '../../config/model/session.ts'
import { BoundedMap } from '../../core/bounded-map.ts'
import { type Clock, isWithin } from '../../core/clock.ts'
import type { SessionKey } from '../../core/names.ts'
import type { Keyring } from '../../core/seal.ts'
import { setCookie } from '../../http/cookies.ts'
import type { BoundDevice, SessionRecord } from '../record/record.ts'
import { boundSuffix, type SessionCookie } from './cookie.ts'
import { GatewayCookie } from './gateway-cookies.ts'

/**
 * How long a cookie is accepted after the browser has dropped it, in ms. Requests that the browser
 * sends together with the proof arrive with the previous cookie, or without one. The clocks of
 * replicas may differ by this time.
 */
const overlapMs = 30_000
const maxVerified = 20_000

/** Why a request with the cookie of a bound session does not come from its device. */
export type BoundCookieFault = 'missing' | 'expired' | 'invalid'

export interface BoundCookieParts {
  readonly cookie: Pick<SessionCookie, 'withSuffix'>
  readonly config: DeviceBindingConfig
  readonly keyring: Keyring
  readonly clock: Clock
}

/**
 * The short-lived cookie that a browser gets for each proof that it has the key of the session. It
 * is sealed for the session, so replicas verify it without the store, and only once.
 */
export class BoundCookie extends GatewayCookie {
  readonly #parts: BoundCookieParts
  readonly #verified = new BoundedMap<string, Verified>('device_proofs', maxVerified)

  constructor(parts: BoundCookieParts) {
    super(parts.cookie.withSuffix(boundSuffix))
    this.#parts = parts
  }

  /** Whether browsers register keys. */
  get isOn(): boolean {
    return this.#parts.config.isOn
  }

  get name(): string {
    return this.cookie.name
  }

  /** The attributes of the cookie, as in `Set-Cookie`, without `Max-Age`. */
  get attributes(): string {
    return setCookie(this.cookie, '').replace(/^[^;]*; /, '')
  }

  /** The `Set-Cookie` value after a proof for a session. */
  set(key: SessionKey): string {
    const { keyring, clock, config } = this.#parts
    const plain = Buffer.alloc(8)
    plain.writeDoubleBE(clock.now())
    const value = keyring.seal(plain, contextOf(key)).toString('base64url')
    return setCookie(this.cookie, value, Math.floor(config.cookieLifetimeMs / 1000))
  }

  /** Why a request with the cookie of this session is refused; `undefined` when it is not. */
  faultOf(
    key: SessionKey,
    device: BoundDevice | undefined,
    cookieHeader: string | undefined,
  ): BoundCookieFault | undefined {
    if (device === undefined || !this.isOn) return undefined
    const fault = this.#faultIn(key, cookieHeader)
    // Requests that the browser sent before it had the first cookie.
    if (fault !== undefined && isWithin(overlapMs, device.bound_at, this.#parts.clock.now())) return undefined
    return fault
  }

  /** Whether a session needs a key and has none, some time after the sign-in. */
  lacksDevice({ device, created_at }: Pick<SessionRecord, 'device' | 'created_at'>): boolean {
    const { isRequired, registrationGraceMs } = this.#parts.config
    return isRequired && device === undefined && !isWithin(registrationGraceMs, created_at, this.#parts.clock.now())
  }

  #faultIn(key: SessionKey, cookieHeader: string | undefined): BoundCookieFault | undefined {
    const value = this.valueIn(cookieHeader)
    if (value === undefined) return 'missing'
    const verified = this.#verified.get(value) ?? this.#verify(value, key)
    if (verified?.key !== key) return 'invalid'
    const lifetimeMs = this.#parts.config.cookieLifetimeMs + 2 * overlapMs
    return isWithin(lifetimeMs, verified.provedAt - overlapMs, this.#parts.clock.now()) ? undefined : 'expired'
  }

  #verify(value: string, key: SessionKey): Verified | undefined {
    if (!/^[\w-]{54}$/.test(value)) return undefined
    const plain = this.#parts.keyring.open(Buffer.from(value, 'base64url'), contextOf(key))
    if (plain?.length !== 8) return undefined
    const verified = { key, provedAt: plain.readDoubleBE() }
    this.#verified.set(value, verified)
    return verified
  }
}

interface Verified {
  readonly key: SessionKey
  /** In ms since the epoch. */
  readonly provedAt: number
}

function contextOf(key: SessionKey): string {
  return `gatehouse bound cookie of ${key}`
}
