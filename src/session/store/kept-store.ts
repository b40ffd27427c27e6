import type { KeptKey, SubTag } from '../../core/names.ts'

/**
 * Where a store keeps the content of requests until their person has signed in again. It sees
 * sealed bytes only. A {@link SessionStore} implements this too, and has the same errors.
 *
 *     arriving ──► kept ◄──► sending ──► sent
 *         └─────────┴──► dropped
 */
export interface KeptStore {
  /**
   * Begins a request that arrives. Without further calls it is dropped after `ttl` ms.
   * @returns `too_many` when the person of the key has `max` kept requests already; `full` when the
   * store has no room
   */
  begin(key: KeptKey, max: number, ttl: number): Promise<'begun' | 'too_many' | 'full'>

  /**
   * Adds the next part of the content, and keeps the request for `ttl` ms from now.
   * @returns `false`, and the part is not stored, when the store has no room or the request is gone
   */
  append(key: KeptKey, part: Uint8Array, ttl: number): Promise<boolean>

  /**
   * The content is complete: the request is kept for `ttl` ms from now.
   * @param head the description of the request
   * @returns `false` when the request is gone
   */
  complete(key: KeptKey, head: Uint8Array, ttl: number): Promise<boolean>

  /** The description of a complete request, and its state. */
  read(key: KeptKey): Promise<KeptHead | undefined>

  /**
   * Takes the content, once: only one caller gets it. The request is `sending` from then on, also
   * when the reply is lost.
   * @returns the parts in order; `undefined` when the request is gone, or was taken before
   */
  take(key: KeptKey): Promise<readonly Uint8Array[] | undefined>

  /** Records that the content was not sent. It can be taken again. */
  giveBack(key: KeptKey): Promise<void>

  /** Records that the content was sent, and deletes it. The description stays until it expires. */
  finish(key: KeptKey): Promise<void>

  /**
   * Deletes a request whose content was not taken.
   * @returns `false` when there was none
   */
  drop(key: KeptKey): Promise<boolean>
}

export interface KeptHead {
  readonly head: Uint8Array
  readonly state: 'kept' | 'sending' | 'sent'
}

/** The person of a kept request: the first part of its key. */
export function personOf(key: KeptKey): SubTag {
  return key.slice(0, key.indexOf(':')) as SubTag
}
