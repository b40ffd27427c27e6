import type { SessionKey } from '../../core/names.ts'
import type { SessionStore } from '../store/store.ts'

/** How long the reason of an ending is remembered, in ms. */
const rememberedMs = 24 * 60 * 60 * 1000

/**
 * Remembers that a session ends because its person has signed in elsewhere. All processes learn it,
 * so this comes before the session ends.
 * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
 */
export async function rememberEndedElsewhere(key: SessionKey, store: Pick<SessionStore, 'takeOnce'>): Promise<void> {
  await store.takeOnce(nameOf(key), rememberedMs)
}

/**
 * Whether a session has ended in the last day because its person has signed in elsewhere.
 * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
 */
export function hasEndedElsewhere(key: SessionKey, store: Pick<SessionStore, 'isTaken'>): Promise<boolean> {
  return store.isTaken(nameOf(key))
}

function nameOf(key: SessionKey): string {
  return `ended elsewhere: ${key}`
}
