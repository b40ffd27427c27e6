import { BoundedMap } from '../../core/bounded-map.ts'
import type { SessionKey } from '../../core/names.ts'

/** How long an expired cookie is remembered, in ms. */
const rememberedMs = 10_000

/**
 * The session cookies that this process has expired or replaced in the last seconds. Such a cookie
 * must not be expired a second time: the browser may have signed in again in the meantime, and the
 * new cookie has the same name.
 */
export class ExpiredCookies {
  readonly #keys = new BoundedMap<SessionKey, true>(10_000, { lifetimeMs: rememberedMs })

  add(key: SessionKey): void {
    this.#keys.set(key, true)
  }

  has(key: SessionKey): boolean {
    return this.#keys.has(key)
  }
}
