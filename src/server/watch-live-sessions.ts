import type { Clock } from '../core/clock.ts'
import type { SessionKey } from '../core/names.ts'
import { pauses } from '../core/pauses.ts'
import { Repeating } from '../core/repeating.ts'
import type { Log } from '../observe/log.ts'
import type { LiveStreams } from '../proxy/live-streams.ts'
import type { Sessions } from '../session/live/live-sessions.ts'
import type { SessionStore } from '../session/store/store.ts'
import type { ExchangedTokens } from '../tokens/exchanged-tokens.ts'

/** How soon they are read again after the store did not respond, in ms. */
const retryMs = 1000
const maxConcurrentReads = 50
/** How long a stream stays open while the store is silent, in ms: the longest outage grace. */
const maxUnconfirmedMs = 5 * 60 * 1000

/** A session with open streams. Times in ms since the epoch. */
interface StreamSession {
  /** When the session ends at the latest. Infinity until the store was read. */
  readonly endsAt: number
  /** When the store confirmed the session last, or when its stream was first seen. */
  readonly confirmedAt: number
}

/** The sessions with open streams. */
export type StreamSessions = Map<SessionKey, StreamSession>

export interface WatchParts {
  readonly live: Pick<LiveStreams, 'sessions' | 'closeAll' | 'closeOver'>
  readonly exchangedTokens: Pick<ExchangedTokens, 'endOver'>
  readonly sessions: Pick<Sessions, 'read'>
  readonly store: Pick<SessionStore, 'onNotice'>
  /** Shared by all generations, so that a reload during an outage does not extend a stream. */
  readonly streamSessions: StreamSessions
  readonly clock: Clock
  readonly log: Log
}

/**
 * Closes the streams of sessions that have expired. A stream makes no requests, so no request would
 * find its session expired. Each check reads all sessions that have open streams. A check also runs
 * when the store responds again, because notices of endings may have been lost.
 */
export class LiveSessionsWatch {
  readonly #parts: WatchParts
  readonly #checking = new Repeating('live_sessions', () => this.#checkAll())
  readonly #stopListening: () => void

  constructor(parts: WatchParts) {
    this.#parts = parts
    this.#checking.wakeIn(pauses.checkStreamsMs)
    this.#stopListening = parts.store.onNotice(({ kind }) => {
      if (kind === 'resumed') this.check()
    })
  }

  /** Checks all open streams now. */
  check(): void {
    this.#checking.wake()
  }

  stop(): void {
    this.#stopListening()
    void this.#checking.stop()
  }

  /** Closes the streams of all sessions that have ended, and resolves to the pause, in ms. */
  async #checkAll(): Promise<number> {
    const { live, exchangedTokens, streamSessions: known, clock, log } = this.#parts
    live.closeOver()
    exchangedTokens.endOver()
    const keys = [...live.sessions()]
    const now = clock.now()
    const open = new Set(keys)
    for (const [key, { endsAt }] of known) {
      if (now >= endsAt) live.closeAll([key])
      if (now >= endsAt || !open.has(key)) known.delete(key)
    }
    for (const key of keys) if (!known.has(key)) known.set(key, { endsAt: Infinity, confirmedAt: now })

    let hasResponded = true
    for (let start = 0; start < keys.length && hasResponded && !this.#checking.isStopped; start += maxConcurrentReads)
      hasResponded = await this.#confirm(keys.slice(start, start + maxConcurrentReads))
    if (!hasResponded) log.debug('streams.not_looked_up')
    return this.#closeUnconfirmed(hasResponded ? pauses.checkStreamsMs : retryMs)
  }

  /** Closes the streams of sessions that have ended. Resolves to whether the store responded. */
  async #confirm(keys: readonly SessionKey[]): Promise<boolean> {
    const { live, sessions, streamSessions: known, clock } = this.#parts
    const reads = await Promise.allSettled(keys.map((key) => sessions.read(key)))
    for (const [index, key] of keys.entries()) {
      const read = reads[index]
      if (read?.status !== 'fulfilled') continue
      if (read.value === undefined) live.closeAll([key])
      else known.set(key, { endsAt: read.value.record.absolute_expires_at, confirmedAt: clock.now() })
    }
    return reads.some(({ status }) => status === 'fulfilled')
  }

  /**
   * Closes the streams of sessions that the store has not confirmed for too long.
   * @returns the pause until the next check, in ms: until the next session ends, `pauseMs` at most
   */
  #closeUnconfirmed(pauseMs: number): number {
    const { live, streamSessions: known, clock } = this.#parts
    const now = clock.now()
    for (const [key, { endsAt, confirmedAt }] of known) {
      if (now >= confirmedAt + maxUnconfirmedMs) live.closeAll([key])
      // A clock that was set back does not extend a stream.
      if (now < confirmedAt) known.set(key, { endsAt, confirmedAt: now })
      pauseMs = Math.min(pauseMs, endsAt - now)
    }
    return Math.max(pauseMs, 0)
  }
}
