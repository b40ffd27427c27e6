import type { SessionKey } from '../core/names.ts'
import { Roster } from '../core/roster.ts'

/** Why a stream is cut; peers that can be told are. */
export type CutReason = 'session_ended' | 'going_away'

/** A response, an upload or a tunnel that is open. */
export interface LiveStream {
  /**
   * It does not end by itself, as a tunnel or an event stream: a shutdown that waited for it would
   * wait in vain.
   */
  readonly isEndless: boolean
  /** May be called again while it takes effect. */
  cut(why: CutReason): void
}

/** What is open for a session: responses, uploads and tunnels, which end with it. */
export class LiveStreams {
  readonly #open = new Roster<SessionKey | undefined, LiveStream[]>(
    () => [],
    ({ length }) => length > 0,
  )
  #size = 0

  /** How many streams are open. */
  get size(): number {
    return this.#size
  }

  /**
   * Remembers an open stream until the answer is called; it may be called more than once. Nobody's
   * stream has no session.
   */
  open(session: SessionKey | undefined, stream: LiveStream): () => void {
    const streams = this.#open.of(session)
    streams.push(stream)
    this.#size += 1
    return () => this.#release(streams, stream)
  }

  /** Cuts what is open for sessions that have ended. */
  closeAll(sessions: Iterable<SessionKey>): void {
    for (const session of sessions) this.#cut(session, 'session_ended')
  }

  /** Cuts what would never end by itself, with or without a session, for the gateway shuts down. */
  closeEndless(): void {
    for (const [session] of [...this.#open.needed()]) this.#cut(session, 'going_away', ({ isEndless }) => isEndless)
  }

  /** The sessions that have something open. */
  *sessions(): IterableIterator<SessionKey> {
    for (const [session] of this.#open.needed()) if (session !== undefined) yield session
  }

  #cut(session: SessionKey | undefined, why: CutReason, which: (stream: LiveStream) => boolean = () => true): void {
    // A copy: what is cut releases itself while we walk.
    for (const stream of [...(this.#open.get(session) ?? [])]) if (which(stream)) stream.cut(why)
  }

  #release(streams: LiveStream[], stream: LiveStream): void {
    const at = streams.lastIndexOf(stream)
    if (at < 0) return
    const last = streams.pop() as LiveStream
    if (last !== stream) streams[at] = last
    this.#size -= 1
  }
}
