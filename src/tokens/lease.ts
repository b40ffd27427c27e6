import { setTimeout as wait } from 'node:timers/promises'
import type { SessionKey } from '../core/names.ts'
import { randomToken } from '../core/random.ts'
import type { SessionStore } from '../session/store.ts'

export type LeaseStore = Pick<SessionStore, 'acquireLease' | 'renewLease' | 'releaseLease'>

/** A process that is killed leaves a session locked for this long at the most, in ms. */
const leaseMs = 5000

/**
 * Runs `work` while no other replica does the same for this session; the lease is renewed for as
 * long as `work` takes. `undefined`, and nothing was run: another replica holds the lease.
 */
export async function underLease<T>(
  key: SessionKey,
  store: LeaseStore,
  work: () => Promise<T>,
): Promise<{ readonly result: T } | undefined> {
  const owner = randomToken(16)
  if (!(await store.acquireLease(key, owner, leaseMs))) return undefined
  const renewal = setInterval(() => void store.renewLease(key, owner, leaseMs).catch(() => {}), leaseMs / 4).unref()
  try {
    return { result: await work() }
  } finally {
    clearInterval(renewal)
    // What cannot be given back expires.
    await store.releaseLease(key, owner).catch(() => {})
  }
}

/**
 * Repeats `attempt`, first at once, then ever more slowly, until it answers or `limitMs` are over.
 */
export async function untilAnswered<T>(attempt: () => Promise<T | undefined>, limitMs: number): Promise<T | undefined> {
  let pauseMs = 20
  for (let waited = 0; ;) {
    const answer = await attempt()
    if (answer !== undefined || waited >= limitMs) return answer
    await wait(pauseMs, undefined, { ref: false })
    waited += pauseMs
    pauseMs = Math.min(pauseMs * 1.5, 250)
  }
}
