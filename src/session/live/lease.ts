import { setTimeout as wait } from 'node:timers/promises'
import type { SessionKey } from '../../core/names.ts'
import { pauses } from '../../core/pauses.ts'
import { randomToken } from '../../core/random.ts'
import type { SessionStore } from '../store/store.ts'

export type LeaseStore = Pick<SessionStore, 'acquireLease' | 'renewLease' | 'releaseLease'>

/**
 * Runs `work` under a lease that is renewed meanwhile, so that no other process does so at the same
 * time. Its signal is aborted when the lease is lost, or may be lost without the store.
 * @returns `undefined`, and `work` did not run, when another process holds the lease
 * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`, or what `work` throws
 */
export async function underLease<T>(
  key: SessionKey,
  store: LeaseStore,
  work: (lost: AbortSignal) => Promise<T>,
): Promise<{ readonly result: T } | undefined> {
  const owner = randomToken(16)
  const leaseMs = pauses.leaseMs
  const renewEveryMs = leaseMs / 4
  let heldUntil = performance.now() + leaseMs
  if (!(await store.acquireLease(key, owner, leaseMs))) return undefined
  const lost = new AbortController()
  const renew = async () => {
    const began = performance.now()
    // A process that was suspended may hold a lease that has expired.
    if (began >= heldUntil) return lost.abort()
    const isHeld = await store.renewLease(key, owner, leaseMs).catch(() => undefined)
    if (isHeld === false) lost.abort()
    else if (isHeld === true) heldUntil = began + leaseMs
    else if (performance.now() + renewEveryMs >= heldUntil) lost.abort()
  }
  const renewal = setInterval(() => void renew(), renewEveryMs).unref()
  try {
    return { result: await work(lost.signal) }
  } finally {
    clearInterval(renewal)
    // A lease that cannot be released expires.
    await store.releaseLease(key, owner).catch(() => {})
  }
}

/** Repeats `attempt` with growing pauses until it returns a value or `limitMs` have passed. */
export async function retryUntil<T>(attempt: () => Promise<T | undefined>, limitMs: number): Promise<T | undefined> {
  let pauseMs = 20
  for (let waitedMs = 0; ;) {
    const result = await attempt()
    if (result !== undefined || waitedMs >= limitMs) return result
    await wait(pauseMs, undefined, { ref: false })
    waitedMs += pauseMs
    pauseMs = Math.min(pauseMs * 1.5, 250)
  }
}
