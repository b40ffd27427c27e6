import type { SessionKey } from '../core/names.ts'
import { randomToken, sha256 } from '../core/random.ts'
import type { SessionStore } from '../session/store/store.ts'

export type LeaseStore = Pick<SessionStore, 'acquireLease' | 'renewLease' | 'releaseLease'>

/**
 * The lifetime of the lease, in ms. After a process was killed, another one takes over within this
 * time.
 */
const leaseMs = 5_000
const renewEveryMs = leaseMs / 4

/**
 * Runs `work` while this process holds the lease of a name. When the lease is lost, or may be lost
 * because the store is unavailable, `work` is told to stop.
 * @returns `false`, and `work` did not run, when another process holds the lease
 * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`, or what `work` throws
 */
export async function whileHolding(
  name: readonly [string, ...string[]],
  { store, signal: stopped }: { readonly store: LeaseStore; readonly signal: AbortSignal },
  work: (signal: AbortSignal) => Promise<void>,
): Promise<boolean> {
  const [key, owner] = [sha256(...name) as SessionKey, randomToken(16)]
  let heldUntil = performance.now() + leaseMs
  if (!(await store.acquireLease(key, owner, leaseMs))) return false
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
    await work(AbortSignal.any([stopped, lost.signal]))
  } finally {
    clearInterval(renewal)
    // A lease that cannot be released expires.
    await store.releaseLease(key, owner).catch(() => {})
  }
  return true
}
