import type { SessionKey } from '../core/names.ts'
import { Roster } from '../limits/fair-queue.ts'

/** Why a stream is cut. A WebSocket gets the reason in its Close frame. */
export type CutReason = 'session_ended' | 'going_away'

/** A response, an upload or a tunnel that is open. */
export interface LiveStream {
  /** It does not end by itself (a tunnel, an event stream), so a shutdown does not wait for it. */
  readonly isEndless: boolean
  /** May be called again before it has taken effect. */
  cut(why: CutReason): void
}

/** A stream, and its place in the list of its session. */
interface Listed {
  readonly stream: LiveStream
  at: number
}

/**
 * The open responses, uploads and tunnels of each session. They end with the session. Each request
 * is in a list for a moment. With a `Set` instead of the list, a request took 1.3 times the
 * processor time (bench/HISTORY.md).
 */
export class LiveStreams {
  readonly #open = new Roster<SessionKey | undefined, Listed[]>(
    () => [],
    ({ length }) => length > 0,
  )

  /** The streams of access tokens → whether the token has ended. */
  readonly #ofTokens = new Map<LiveStream, () => boolean>()
  #isClosingOver = false

  /** How many streams are open. */
  get size(): number {
    return [...this.#open.needed()].reduce((sum, [, streams]) => sum + streams.length, 0)
  }

  /**
   * Lists an open stream. `session` is `undefined` for a stream of a client without a session.
   * @param isOver whether the access token of the client has ended
   * @returns removes it from the list; further calls have no effect
   */
  open(session: SessionKey | undefined, stream: LiveStream, isOver?: () => boolean): () => void {
    const streams = this.#open.of(session)
    const listed = { stream, at: streams.length }
    streams.push(listed)
    if (isOver !== undefined) this.#ofTokens.set(stream, isOver)
    return () => {
      this.#ofTokens.delete(stream)
      remove(streams, listed)
    }
  }

  /** Cuts the streams of access tokens that have ended: soon, because endings come in groups. */
  closeOver(): void {
    if (this.#isClosingOver || this.#ofTokens.size === 0) return
    this.#isClosingOver = true
    setImmediate(() => {
      this.#isClosingOver = false
      for (const [stream, isOver] of [...this.#ofTokens]) if (isOver()) stream.cut('session_ended')
    })
  }

  /** Cuts the streams of sessions that have ended. */
  closeAll(sessions: Iterable<SessionKey>): void {
    for (const session of sessions) this.#cut(session, 'session_ended')
  }

  /** Cuts all endless streams, because the gateway shuts down. */
  closeEndless(): void {
    for (const [session] of [...this.#open.needed()]) this.#cut(session, 'going_away', ({ isEndless }) => isEndless)
  }

  /** The sessions that have open streams. */
  *sessions(): IterableIterator<SessionKey> {
    for (const [session] of this.#open.needed()) if (session !== undefined) yield session
  }

  #cut(session: SessionKey | undefined, why: CutReason, which: (stream: LiveStream) => boolean = () => true): void {
    // A copy, because a stream that is cut removes itself.
    for (const { stream } of [...(this.#open.get(session) ?? [])]) if (which(stream)) stream.cut(why)
  }
}

/** The last one takes its place. */
function remove(streams: Listed[], listed: Listed): void {
  const { at } = listed
  if (streams[at] !== listed) return
  const last = streams.pop() as Listed
  if (last === listed) return
  streams[at] = last
  last.at = at
}

/** The minimum time between two reports for a session, in ms. */
const reportEveryMs = 1_000

/**
 * Reports that bytes of an exchange have moved, so that its session does not count as idle.
 * @returns the time of the last report, which the next call needs; on the clock of `performance`
 */
export function reportActivity(
  session: SessionKey | undefined,
  reportedAt: number,
  { onActivity }: { readonly onActivity: (session: SessionKey) => void },
): number {
  if (session === undefined) return reportedAt
  const now = performance.now()
  if (now - reportedAt < reportEveryMs) return reportedAt
  onActivity(session)
  return now
}
