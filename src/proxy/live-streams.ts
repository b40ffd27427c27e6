import type { SessionKey } from '../core/names.ts'

/** Cuts what is open; `why` is for the log and for peers that can be told. */
export type Cut = (why: string) => void

/** What is open for a session: responses, uploads and tunnels, which end with it. */
export class LiveStreams {
  readonly #open = new Map<SessionKey | undefined, Set<Cut>>()
  #size = 0

  /** How many streams are open. */
  get size(): number {
    return this.#size
  }

  /** Remembers an open stream until the answer is called; it may be called more than once. Without a session it only ends with all. */
  open(session: SessionKey | undefined, cut: Cut): () => void {
    const streams = this.#open.get(session)
    if (streams) streams.add(cut)
    else this.#open.set(session, new Set([cut]))
    this.#size += 1
    return () => this.#release(session, cut)
  }

  /** Cuts what is open for these sessions. */
  closeAll(sessions: Iterable<SessionKey>, why = 'the session has ended'): void {
    for (const session of sessions) this.#cut(session, why)
  }

  /** Cuts everything, with or without a session. */
  closeEverything(why: string): void {
    for (const session of [...this.#open.keys()]) this.#cut(session, why)
  }

  /** The sessions that have something open. */
  *sessions(): IterableIterator<SessionKey> {
    for (const session of this.#open.keys()) if (session !== undefined) yield session
  }

  #cut(session: SessionKey | undefined, why: string): void {
    // A copy: what is cut releases itself while we walk.
    for (const cut of [...(this.#open.get(session) ?? [])]) cut(why)
  }

  #release(session: SessionKey | undefined, cut: Cut): void {
    const streams = this.#open.get(session)
    if (!streams?.delete(cut)) return
    this.#size -= 1
    if (streams.size === 0) this.#open.delete(session)
  }
}
