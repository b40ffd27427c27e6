import type { UpstreamConfig } from '../../config/model/upstream.ts'
import type { SessionKey } from '../../core/names.ts'
import type { Keyring } from '../../core/seal.ts'
import type { SessionRecord } from '../record/record.ts'
import { packRecord, unpackRecord } from '../record/sealed-record.ts'

export interface LogoutJobsParts {
  readonly keyring: Keyring
  /** See `audienceOf`. */
  readonly audience: string
  readonly upstreams: readonly Pick<UpstreamConfig, 'name' | 'logout' | 'headers' | 'rules'>[]
}

/**
 * What the logout calls of upstreams need when a session has ended. A job is a part of the record:
 * the person, and the cookies of upstreams with a logout call. It has no refresh token, the others
 * only if such an upstream gets tokens, and no credentials of an application. It opens only as the
 * job of its own session.
 */
export class LogoutJobs {
  readonly audience: string
  readonly #keyring: Keyring
  readonly #upstreams: ReadonlySet<string>
  readonly #needTokens: ReadonlySet<string>

  constructor({ keyring, audience, upstreams }: LogoutJobsParts) {
    const calling = upstreams.filter(({ logout }) => logout.call !== undefined)
    this.#keyring = keyring
    this.audience = audience
    this.#upstreams = new Set(calling.map(({ name }) => name))
    this.#needTokens = new Set(calling.filter(getsTokens).map(({ name }) => name))
  }

  /** Whether no upstream has a logout call. */
  get isEmpty(): boolean {
    return this.#upstreams.size === 0
  }

  /**
   * The sealed job of a session. `none`: nothing is left to do, because the upstreams have removed
   * their cookies. `undefined`: no upstream with a logout call has set any.
   */
  sealedFor(
    key: SessionKey,
    { cookies = {}, application_sessions: _, ...record }: SessionRecord,
  ): Buffer | 'none' | undefined {
    const ofUpstreams = Object.entries(cookies).filter(([name]) => this.#upstreams.has(name))
    if (ofUpstreams.length === 0) return undefined
    const present = ofUpstreams.filter(([, kept]) => kept.length > 0)
    if (present.length === 0) return 'none'
    return this.seal(key, {
      ...record,
      tokens: this.#tokensFor(record.tokens, present),
      cookies: Object.fromEntries(present),
    })
  }

  seal(key: SessionKey, job: SessionRecord): Buffer {
    return this.#keyring.seal(packRecord(job).bytes, this.#context(key))
  }

  /**
   * @returns `newer` when a newer version wrote it in an unknown format; `undefined` when the key
   * is not configured, or the bytes were changed
   */
  open(key: SessionKey, sealed: Uint8Array): SessionRecord | 'newer' | undefined {
    const plain = this.#keyring.open(sealed, this.#context(key))
    const job = plain && unpackRecord(plain)
    return typeof job === 'number' ? this.#keyring.reportNewer('logout_job', job) : job?.record
  }

  #tokensFor(
    { access_token, id_token, obtained_at }: SessionRecord['tokens'],
    cookies: readonly (readonly [upstream: string, unknown])[],
  ): SessionRecord['tokens'] {
    const isNeeded = cookies.some(([name]) => this.#needTokens.has(name))
    return isNeeded ? { access_token, id_token, obtained_at } : { access_token: '', id_token: '', obtained_at }
  }

  #context(key: SessionKey): string {
    return `gatehouse logout job ${key} for ${this.audience}`
  }
}

function getsTokens({ headers, rules }: Pick<UpstreamConfig, 'headers' | 'rules'>): boolean {
  return [headers, ...rules.map((rule) => rule.headers ?? [])].flat().some(({ source }) => source.kind === 'bearer')
}
