import type { SessionStore } from './store.ts'

export type DocumentStore = Pick<SessionStore, 'readDocument' | 'writeDocument'>

/** How often a write is tried when other processes write at the same time. */
const attempts = 5

/**
 * Replaces a document by what `change` makes of it, for `ttl` ms; `undefined` leaves it as it is.
 * @returns `false` when other processes wrote at the same time at each attempt
 * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
 */
export async function changeDocument(
  store: DocumentStore,
  name: string,
  ttl: number,
  change: (sealed: Uint8Array | undefined) => Uint8Array | undefined | Promise<Uint8Array | undefined>,
): Promise<boolean> {
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const before = await store.readDocument(name)
    const sealed = await change(before?.sealed)
    if (sealed === undefined) return true
    if (await store.writeDocument(name, { sealed, version: before?.version ?? 0 }, ttl)) return true
  }
  return false
}
