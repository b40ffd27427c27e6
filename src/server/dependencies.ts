import { setTimeout as wait } from 'node:timers/promises'
import type { SigningKeys } from '../identity/signed/signing-keys.ts'
import type { Log } from '../observe/log.ts'
import type { SessionStore } from '../session/store/store.ts'
import type { Realms } from './realms.ts'

/** How long a start or a reload waits for Redis and the provider, in ms. */
export const startupGraceMs = 2000

const pollMs = 20

/** Whether the store and all providers were reachable when the gateway began to serve. */
export interface FoundAtStart {
  readonly store: boolean
  readonly provider: boolean
}

/**
 * Waits up to 2 s for Redis and the providers, so that the first requests do not fail when all
 * start together.
 */
export async function waitForDependencies(
  store: Pick<SessionStore, 'ping'>,
  {
    realms,
    signingKeys,
  }: { readonly realms: Pick<Realms, 'isKnown'>; readonly signingKeys: Pick<SigningKeys, 'isReady'> },
  log: Log,
): Promise<FoundAtStart> {
  const isStoreReachable = () =>
    store.ping().then(
      () => true,
      () => false,
    )
  const [foundStore, foundProvider] = await Promise.all([
    waitUntil(isStoreReachable, startupGraceMs),
    waitUntil(async () => realms.isKnown, startupGraceMs),
    waitUntil(async () => signingKeys.isReady, startupGraceMs),
  ])
  if (!foundStore)
    log.warn('store.not_there_yet', { hint: 'Pages that need a session get 503 until the store is reachable.' })
  return { store: foundStore, provider: foundProvider }
}

/**
 * Polls a condition.
 * @returns whether it was true within `limitMs`
 */
export async function waitUntil(condition: () => Promise<boolean>, limitMs: number): Promise<boolean> {
  const end = performance.now() + limitMs
  const timeout = wait(limitMs, false, { ref: false })
  while (!(await Promise.race([condition(), timeout]))) {
    if (performance.now() >= end) return false
    await wait(pollMs)
  }
  return true
}
