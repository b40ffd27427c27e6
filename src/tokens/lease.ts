import { setTimeout as wait } from 'node:timers/promises'
import type { SessionKey } from '../core/names.ts'
import { randomToken } from '../core/random.ts'
import type { SessionStore } from '../session/store/store.ts'

export type LeaseStore = Pick<SessionStore, 'acquireLease' | 'renewLease' | 'releaseLease'>

/** The lifetime of a lease, in ms. A killed process leaves the session locked for this time. */
const leaseMs = 5000

/**
 * Runs `work` under the refresh lease of a session, so that no other replica does so at the same
 * time. The lease is renewed until `work` ends.
 * @returns `undefined`, and `work` did not run, when another replica holds the lease
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
    // A lease that cannot be released expires.
    await store.releaseLease(key, owner).catch(() => {})
  }
}

/**
 * Repeats `attempt` with growing pauses until it returns a value, or until `limitMs` have passed.
 */
export async function retryUntil<T>(attempt: () => Promise<T | undefined>, limitMs: number): Promise<T | undefined> {
  let pauseMs = 20
  for (let waited = 0; ;) {
    const result = await attempt()
    if (result !== undefined || waited >= limitMs) return result
    await wait(pauseMs, undefined, { ref: false })
    waited += pauseMs
    pauseMs = Math.min(pauseMs * 1.5, 250)
  }
}
