import type { SessionKey } from '../../core/names.ts'
import type { SessionStore } from '../store/store.ts'

/** How long a renewal is remembered, in ms. The browser gets its new cookie within this time. */
const rememberedMs = 60_000

/**
 * Remembers that a session ends because its person has signed in again in the same browser. All
 * processes learn it, so this comes before the session ends.
 * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
 */
export async function rememberRenewal(key: SessionKey, store: Pick<SessionStore, 'writeDocument'>): Promise<void> {
  await store.writeDocument(nameOf(key), { sealed: new Uint8Array(), version: 0 }, rememberedMs)
}

/**
 * Whether a session has ended in the last minute because its person has signed in again in the same
 * browser.
 * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
 */
export async function isRenewed(key: SessionKey, store: Pick<SessionStore, 'readDocument'>): Promise<boolean> {
  return (await store.readDocument(nameOf(key))) !== undefined
}

function nameOf(key: SessionKey): string {
  return `renewal of ${key}`
}
