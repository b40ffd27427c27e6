import type { TokenExchangeConfig, UpstreamConfig } from '../config/model/upstream.ts'
import { BoundedMap } from '../core/bounded-map.ts'
import type { Clock } from '../core/clock.ts'
import type { ErrorCode } from '../core/error-codes.ts'
import { GatewayError } from '../core/errors.ts'
import type { SessionKey } from '../core/names.ts'
import { Repeating } from '../core/repeating.ts'
import { SingleFlight } from '../core/single-flight.ts'
import type { TokenSet } from '../core/token-set.ts'
import type { Log } from '../observe/log.ts'
import { connectionsFor } from '../provider/outbound.ts'
import type { ExchangedToken } from '../provider/token-exchange.ts'
import type { EndedToken } from './revocations.ts'

/** The largest size of all tokens that are kept, in characters. */
const maxKeptBytes = 32 * 1024 * 1024
/** A token is renewed this long before it expires, or when a fifth of its life is left, in ms. */
const renewBeforeMs = 30_000
/** How long a token without `expires_in` is used, in ms. */
const unknownLifetimeMs = 5 * 60_000
/** How long a refusal is not asked about again, in ms. */
const keepRefusalMs = 10_000
const logEveryMs = 60_000
/** How many ended sessions are remembered. */
const maxEnded = 10_000
/** How long they are remembered, in ms: longer than an exchange takes. */
const rememberEndedMs = 2 * 60_000
/** How long access tokens that have ended are collected before their tokens are revoked, in ms. */
const endOverMs = 100

export type Exchanged =
  | { readonly kind: 'token'; readonly token: string }
  | { readonly kind: 'unavailable'; readonly code: ErrorCode; readonly why: string }

/** Whose access token is exchanged: a session, or an access token of a request. */
export interface ExchangeSubject {
  readonly key: string
  /** See `audienceOf`. */
  readonly audience: string
  readonly record: EndedToken['person'] & { readonly tokens: Pick<TokenSet, 'access_token'> }
  /** Whether the access token has ended before it expires. Absent: a session, see `noteEnded`. */
  readonly hasEnded?: () => boolean
}

export interface Exchange {
  exchangeToken(subject_token: string, wanted: TokenExchangeConfig): Promise<ExchangedToken>
}

export interface ExchangedTokensParts {
  readonly clock: Clock
  readonly log: Log
  /** Whether a session has ended by a renewal: see `hasEndedBy` of `session`. */
  readonly isRenewed: (key: SessionKey) => Promise<boolean>
  /** Revokes tokens at the provider of an audience. */
  readonly revoke: (audience: string, tokens: readonly EndedToken[]) => void
}

interface Kept {
  readonly exchanged: Exchanged
  readonly until: number
  readonly upstream: string
  /** In ms since the epoch. Absent: the provider did not say it, or there is no token. */
  readonly expiresAt?: number | undefined
}

/** What is kept of a session or an access token. */
interface Held extends Pick<ExchangeSubject, 'key' | 'audience' | 'hasEnded'> {
  readonly person: EndedToken['person']
  readonly tokens: ReadonlyMap<string, Kept>
}

/**
 * The tokens that upstreams get in exchange for an access token, in memory only, for each process.
 * A token is never sent to another upstream, and the access token never instead of it. When the
 * session or the access token ends that they came from, they are revoked. An expiry is no ending:
 * with a token, some providers revoke the whole grant (RFC 7009 §2.1), and its client may go on.
 */
export class ExchangedTokens {
  readonly #parts: ExchangedTokensParts
  readonly #bySubject = new BoundedMap<string, Held>('exchanged_tokens', maxKeptBytes, {
    sizeOf: ({ tokens }) => [...tokens.values()].reduce((sum, kept) => sum + sizeOf(kept), 512),
  })
  readonly #underWay = new SingleFlight<string, Exchanged>()
  /** Sessions that have ended a moment ago. Requests with them may still be under way. */
  readonly #ended = new BoundedMap<string, true>('exchange_endings', maxEnded, { lifetimeMs: rememberEndedMs })
  readonly #endingOver = new Repeating('exchanged_tokens', async () => {
    for (const held of [...this.#bySubject.values()]) if (held.hasEnded?.() === true) this.#end(held)
    return undefined
  })
  /** The name of an upstream → when a failure was logged. */
  readonly #loggedAt = new Map<string, number>()

  constructor(parts: ExchangedTokensParts) {
    this.#parts = parts
  }

  /**
   * Revokes the tokens of these sessions, except when the person has signed in again in the same
   * browser: the session at the provider goes on then, perhaps with the same grant.
   */
  noteEnded(keys: readonly SessionKey[]): void {
    for (const key of keys) {
      this.#ended.set(key, true)
      const held = this.#bySubject.get(key)
      if (held !== undefined) this.#end(held)
    }
  }

  /**
   * Revokes the tokens that came from access tokens that have ended: soon, as endings come in
   * groups.
   */
  endOver(): void {
    this.#endingOver.wakeIn(endOverMs)
  }

  /** The token of a subject for an upstream. Returns no promise when it is kept. */
  of(
    subject: ExchangeSubject,
    { name }: Pick<UpstreamConfig, 'name'>,
    wanted: TokenExchangeConfig,
    provider: Exchange,
  ): Exchanged | Promise<Exchanged> {
    const { key } = subject
    if (this.#ended.has(key)) return endedMeanwhile
    // A reload may change what is wanted.
    const wantedText = JSON.stringify([name, wanted])
    const kept = this.#heldOf(subject)?.tokens.get(wantedText)
    if (kept !== undefined && this.#parts.clock.now() < kept.until) return kept.exchanged
    const flight = `${key} ${wantedText}`
    if (this.#underWay.size >= connectionsFor.exchangedTokens && !this.#underWay.has(flight))
      return { kind: 'unavailable', code: 'ERR_PROVIDER_UNAVAILABLE', why: 'too many token exchanges are under way' }
    return this.#underWay.run(flight, async () => {
      const { access_token } = subject.record.tokens
      const found = await this.#exchange(name, () => provider.exchangeToken(access_token, wanted))
      if (this.#ended.has(key) || subject.hasEnded?.() === true) {
        void this.#revoke(heldBy(subject, [[wantedText, found]]))
        return endedMeanwhile
      }
      // `set` measures the size again.
      const others = this.#heldOf(subject)?.tokens ?? []
      this.#bySubject.set(key, heldBy(subject, [...others, [wantedText, found]]))
      return found.exchanged
    })
  }

  /** What is held of a subject, unless it has ended. */
  #heldOf({ key, audience }: ExchangeSubject): Held | undefined {
    const held = this.#bySubject.get(key)
    if (held?.hasEnded?.() === true) this.#end(held)
    else if (held?.audience === audience) return held
    return undefined
  }

  #end(held: Held): void {
    this.#bySubject.delete(held.key)
    void this.#revoke(held)
  }

  /** Revokes what was held of an ended session or access token, but nothing after a renewal. */
  async #revoke({ key, audience, person, hasEnded, tokens }: Held): Promise<void> {
    const isSession = hasEnded === undefined
    if (isSession && (await this.#parts.isRenewed(key as SessionKey).catch(() => false))) return
    const now = this.#parts.clock.now()
    const ended = [...tokens.values()].flatMap(({ exchanged, until, upstream, expiresAt }) =>
      // One that would be renewed now expires soon.
      exchanged.kind === 'token' && (expiresAt === undefined || now < until)
        ? [{ token: exchanged.token, expiresAt, upstream, person }]
        : [],
    )
    if (ended.length > 0) this.#parts.revoke(audience, ended)
  }

  async #exchange(upstream: string, exchange: () => Promise<ExchangedToken>): Promise<Kept> {
    const began = this.#parts.clock.now()
    try {
      const { token, expiresAt } = await exchange()
      const end = expiresAt ?? began + unknownLifetimeMs
      const early = Math.min(renewBeforeMs, (end - began) / 5)
      return { exchanged: { kind: 'token', token }, until: end - early, upstream, expiresAt }
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      const { code, message: why } = error
      this.#logFailure(upstream, code, why)
      // When the provider is away, the next request asks again.
      const until = code === 'ERR_TOKEN_EXCHANGE' ? began + keepRefusalMs : began
      const failure = code === 'ERR_TOKEN_EXCHANGE' ? code : 'ERR_PROVIDER_UNAVAILABLE'
      return { exchanged: { kind: 'unavailable', code: failure, why }, until, upstream }
    }
  }

  /** Once a minute for each upstream, because each request of each person fails. */
  #logFailure(upstream: string, code: ErrorCode, why: string): void {
    const now = this.#parts.clock.now()
    if (now - (this.#loggedAt.get(upstream) ?? -Infinity) < logEveryMs) return
    this.#loggedAt.set(upstream, now)
    const hint = `Check upstreams.${upstream}.token_exchange, and the permissions of this client at the provider.`
    this.#parts.log.warn('token_exchange.failed', { upstream, code, reason: why, hint })
  }
}

function heldBy(
  { key, audience, record: { iss, sub, sid }, hasEnded }: ExchangeSubject,
  tokens: Iterable<readonly [string, Kept]>,
): Held {
  return { key, audience, person: { iss, sub, sid }, ...(hasEnded && { hasEnded }), tokens: new Map(tokens) }
}

const endedMeanwhile = {
  kind: 'unavailable',
  code: 'ERR_UNAUTHENTICATED',
  why: 'the session or the access token has ended during the exchange',
} as const

function sizeOf({ exchanged }: Kept): number {
  return exchanged.kind === 'token' ? 2 * exchanged.token.length : exchanged.why.length
}
