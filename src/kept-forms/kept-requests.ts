import type { KeptRequestsSettings } from '../config/settings.ts'
import type { KeptKey, SubTag } from '../core/names.ts'
import { randomToken, sha256 } from '../core/random.ts'
import type { Keyring } from '../core/seal.ts'
import { cookiesNamed, expireCookie, readCookie, setCookie, type CookieAttributes } from '../http/cookies.ts'
import type { Metrics } from '../observe/metrics.ts'
import type { NotKept } from '../pages/messages/messages.ts'
import type { SessionCookie } from '../session/cookies/session-cookie.ts'
import { personOf, type KeptHead, type KeptStore } from '../session/store/store.ts'

/** A request that was kept, without its content. */
export interface KeptRequest {
  readonly upstream: string
  /** The host and the target (path and query) that it was sent to. */
  readonly host: string
  readonly target: string
  /** The path and query of the page that the form was on. Absent: unknown. */
  readonly returnTo?: string | undefined
  /** The header fields that describe the content, and `Referer`: names and values in turn. */
  readonly fields: readonly string[]
  readonly contentType: string
  /** The size of the content. */
  readonly bytes: number
  /** How many parts the store has. */
  readonly parts: number
}

/** A kept request that the cookie of a browser names. */
export interface FoundRequest {
  readonly key: KeptKey
  readonly reference: string
  readonly request: KeptRequest
  readonly state: KeptHead['state']
}

/** Receives the parts of the content of a request. */
export interface KeptWriter {
  /** @returns why the part cannot be kept; `undefined` when it is kept */
  append(part: Buffer): Promise<NotKept | undefined>
  /**
   * The content is complete.
   * @returns the reference of the request, and the cookie for its browser; or why it cannot be kept
   */
  complete(request: Omit<KeptRequest, 'bytes' | 'parts'>): Promise<Kept | NotKept>
  /** Deletes what was written. */
  drop(): Promise<void>
}

export interface Kept {
  readonly reference: string
  readonly setCookie: string
}

export interface KeptRequestsParts {
  readonly store: KeptStore
  readonly keyring: Keyring
  /** See `audienceOf`. */
  readonly audience: string
  readonly cookie: Pick<SessionCookie, 'withSuffix'>
  readonly metrics: Metrics
}

export type KeptOutcome = 'kept' | 'not_kept' | 'sent' | 'declined' | 'discarded'

/** How many requests of one person are kept at the same time. */
const maxPerPerson = 8
/** How many cookies about kept requests the gateway reads in one request. */
const maxCookies = 2 * maxPerPerson
/** The length of a reference, in characters. It names the cookie; it gives access to nothing. */
const referenceLength = 8
const suffix = 'kept-'

/**
 * The requests that wait until their person has signed in again. The key of a request begins with
 * the tag of its person. The rest is the hash of a secret in a cookie, so only the browser that
 * sent the request finds it.
 */
export class KeptRequests {
  readonly maxSizeBytes: number
  /** Whether the gateway keeps requests. */
  readonly isOn: boolean
  readonly #keepForMs: number
  readonly #parts: KeptRequestsParts
  readonly #outcomes: ReturnType<Metrics['counter']>

  constructor({ maxSizeBytes, keepForMs }: KeptRequestsSettings, parts: KeptRequestsParts) {
    this.maxSizeBytes = maxSizeBytes
    this.isOn = maxSizeBytes > 0
    this.#keepForMs = keepForMs
    this.#parts = parts
    this.#outcomes = parts.metrics.counter({
      name: 'gatehouse_kept_requests_total',
      help: 'Forms that met an ended session, by outcome: kept or not_kept, then sent, declined or discarded.',
      labels: ['outcome'],
    })
    for (const outcome of ['kept', 'not_kept', 'sent', 'declined', 'discarded']) this.#outcomes.of(outcome)
  }

  /** Counts an outcome in the metric. */
  count(outcome: KeptOutcome): void {
    this.#outcomes.of(outcome).add()
  }

  /**
   * Begins to keep a request.
   * @param partMs how long the store keeps the request without a further part
   * @returns a writer; or why the request cannot be kept
   * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`, also from the methods of the writer
   */
  async begin(person: SubTag, partMs: number): Promise<KeptWriter | NotKept> {
    const { store, keyring } = this.#parts
    const secret = randomToken(30)
    const key = keyOf(person, secret)
    const begun = await store.begin(key, maxPerPerson, partMs)
    if (begun !== 'begun') return begun
    let [parts, bytes] = [0, 0]
    return {
      append: async (part) => {
        const sealed = keyring.seal(part, this.#context(key, String(parts)))
        parts += 1
        bytes += part.length
        return (await store.append(key, sealed, partMs)) ? undefined : 'full'
      },
      complete: async (described) => {
        const request: KeptRequest = { ...described, bytes, parts }
        const sealed = keyring.seal(JSON.stringify(request), this.#context(key, 'head'))
        if (!(await store.complete(key, sealed, this.#keepForMs))) return 'full'
        const reference = secret.slice(0, referenceLength)
        const setting = setCookie(this.#cookie(reference), `${person}.${secret}`, Math.ceil(this.#keepForMs / 1000))
        return { reference, setCookie: setting }
      },
      drop: async () => void (await store.drop(key)),
    }
  }

  /**
   * Finds the request that a reference and the cookie of the browser name.
   * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
   */
  async find(reference: string, cookieHeader: string | undefined): Promise<FoundRequest | undefined> {
    const key = keyFromCookie(readCookie(cookieHeader, this.#cookie(reference).name))
    const found = key && (await this.#parts.store.read(key))
    const { keyring } = this.#parts
    const request = found && keyring.openJson<KeptRequest>('kept_form', found.head, this.#context(key, 'head'))
    if (key === undefined || found === undefined || request === undefined || request === 'newer') return undefined
    return { key, reference, request, state: found.state }
  }

  /**
   * Takes the content of a request, once.
   * @returns its parts; `undefined` when it was taken before, or when its parts are missing or
   * cannot be opened
   * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
   */
  async take({ key, request }: FoundRequest): Promise<readonly Buffer[] | undefined> {
    const sealed = await this.#parts.store.take(key)
    if (sealed === undefined) return undefined
    const parts = sealed.flatMap((part, n) => this.#parts.keyring.open(part, this.#context(key, String(n))) ?? [])
    const bytes = parts.reduce((sum, { length }) => sum + length, 0)
    if (parts.length === request.parts && bytes === request.bytes) return parts
    // A store drops only a request whose content is not taken.
    await this.#parts.store.giveBack(key)
    await this.#parts.store.drop(key)
    return undefined
  }

  /** Records that the content was not sent, so that it can be taken again. */
  giveBack({ key }: FoundRequest): Promise<void> {
    return this.#parts.store.giveBack(key)
  }

  /** Records that the content was sent. */
  finish({ key }: FoundRequest): Promise<void> {
    return this.#parts.store.finish(key)
  }

  /**
   * Deletes a request whose content was not taken.
   * @returns whether there was one
   * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
   */
  drop(key: KeptKey): Promise<boolean> {
    return this.#parts.store.drop(key)
  }

  /** The requests of this browser that are not those of `person`. Does not read the store. */
  ofOthers(person: SubTag, cookieHeader: string | undefined): { readonly key: KeptKey; readonly reference: string }[] {
    const prefix = this.#cookie('').name
    return [...cookiesNamed(cookieHeader, prefix)].slice(0, maxCookies).flatMap(([name, value]) => {
      const reference = asReference(name.slice(prefix.length))
      const key = keyFromCookie(value)
      return reference === undefined || key === undefined || personOf(key) === person ? [] : [{ key, reference }]
    })
  }

  /** A `Set-Cookie` value that expires the cookie of a request. */
  expireCookie(reference: string): string {
    return expireCookie(this.#cookie(reference))
  }

  #cookie(reference: string): CookieAttributes {
    return this.#parts.cookie.withSuffix(suffix + reference)
  }

  #context(key: KeptKey, part: string): string {
    return `gatehouse kept request ${key} ${part} for ${this.#parts.audience}`
  }
}

/** The reference that a text is; `undefined` when the text is not a reference. */
export function asReference(text: string | null | undefined): string | undefined {
  return text != null && /^[\w-]{8}$/.test(text) ? text : undefined
}

function keyOf(person: SubTag, secret: string): KeptKey {
  return `${person}:${sha256(secret).slice(0, 32)}` as KeptKey
}

function keyFromCookie(value: string | undefined): KeptKey | undefined {
  const [, person, secret] = /^([\w-]{24})\.([\w-]{40})$/.exec(value ?? '') ?? []
  return person === undefined || secret === undefined ? undefined : keyOf(person as SubTag, secret)
}
