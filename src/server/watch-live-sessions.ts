import type { Clock } from '../core/clock.ts'
import type { SessionKey } from '../core/names.ts'
import type { Log } from '../observe/log.ts'
import type { LiveStreams } from '../proxy/live-streams.ts'
import type { Sessions } from '../session/sessions.ts'

/**
 * How often sessions with open streams are looked up, in ms: so much longer than its session may a
 * stream last at most.
 */
const everyMs = 5000
/** How soon again when the store did not answer. */
const retryMs = 1000
const atOnce = 50
/**
 * How long a stream stays open while nobody can say whether its session is still there, in ms: as
 * the longest grace for requests.
 */
const longestUnknownMs = 5 * 60 * 1000

/**
 * When a session ends at the latest, as soon as the store has said it: it has not to be asked for
 * that again. And when it answered last, or the stream was first seen; in ms since the epoch.
 */
export type KnownSessions = Map<SessionKey, { readonly endsAt: number; readonly answeredAt: number }>

export interface WatchParts {
  readonly live: Pick<LiveStreams, 'sessions' | 'closeAll'>
  readonly sessions: Pick<Sessions, 'read'>
  /** What the watch before this one knew: a reload in an outage prolongs nothing. */
  readonly known: KnownSessions
  readonly clock: Clock
  readonly log: Log
}

export interface LiveSessionsWatch {
  /** Looks at once, because notices may have been missed. */
  look(): void
  stop(): void
}

/**
 * Streams that are open for a session make no requests, so nobody would see that it has expired:
 * the sessions behind them are looked up from time to time, and what belongs to none is closed. It
 * also finds what a lost notice did not tell.
 */
export function watchLiveSessions({ live, sessions, known, clock, log }: WatchParts): LiveSessionsWatch {
  let stopped = false
  let looking = false
  let again = false
  let timer: NodeJS.Timeout | undefined
  const look = async (): Promise<void> => {
    again = looking
    if (looking || stopped) return
    looking = true
    clearTimeout(timer)
    const pause = await lookUp()
    looking = false
    if (again) return look()
    if (!stopped) timer = setTimeout(() => void look(), pause).unref()
  }

  /** Resolves to whether the store answered at all. */
  const lookUpSome = async (keys: readonly SessionKey[]): Promise<boolean> => {
    const answers = await Promise.allSettled(keys.map((key) => sessions.read(key)))
    for (const [at, key] of keys.entries()) {
      const answer = answers[at]
      if (answer?.status !== 'fulfilled') continue
      if (answer.value === undefined) live.closeAll([key])
      else known.set(key, { endsAt: answer.value.record.absolute_expires_at, answeredAt: clock.now() })
    }
    return answers.some(({ status }) => status === 'fulfilled')
  }

  /** Resolves to how long the next look has time. */
  const lookUp = async (): Promise<number> => {
    const keys = [...live.sessions()]
    const now = clock.now()
    const open = new Set(keys)
    for (const [key, { endsAt }] of known) {
      if (now >= endsAt) live.closeAll([key])
      if (now >= endsAt || !open.has(key)) known.delete(key)
    }
    for (const key of keys) if (!known.has(key)) known.set(key, { endsAt: Infinity, answeredAt: now })

    let isAnswered = true
    for (let index = 0; index < keys.length && isAnswered && !stopped; index += atOnce)
      isAnswered = await lookUpSome(keys.slice(index, index + atOnce))
    // While the store is away nothing more can be said about a session; the next look can.
    if (!isAnswered) log.debug('streams.not_looked_up')
    let pause = isAnswered ? everyMs : retryMs
    for (const [key, { endsAt, answeredAt }] of known) {
      const now = clock.now()
      if (now >= answeredAt + longestUnknownMs) live.closeAll([key])
      // A clock that is set back prolongs nothing.
      if (now < answeredAt) known.set(key, { endsAt, answeredAt: now })
      pause = Math.min(pause, endsAt - now)
    }
    return Math.max(pause, 0)
  }

  timer = setTimeout(() => void look(), everyMs).unref()
  return {
    look: () => void look(),
    stop: () => {
      stopped = true
      clearTimeout(timer)
    },
  }
}
