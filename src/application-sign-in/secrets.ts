import type { ApplicationSignInConfig, UpstreamConfig } from '../config/model/upstream.ts'
import { type Claims, type ClaimTemplate, readClaim } from '../core/claims.ts'
import { GatewayError } from '../core/errors.ts'
import { sha256 } from '../core/random.ts'
import type { Keyring } from '../core/seal.ts'
import type { StoredSession } from '../session/record/record.ts'
import { changeDocument, type DocumentStore } from '../session/store/documents.ts'

/** Whose password it is: a person of an audience (see `audienceOf`). */
export interface Owner {
  readonly audience: string
  readonly sub: string
}

export interface Credentials {
  readonly username: string
  readonly password: string
}

/** What a person has entered. */
interface KeptSecret {
  readonly password: string
  /** Absent: it comes from claims. */
  readonly username?: string
}

/** How long a password that an application has refused is not tried again, in ms. */
const refusedForMs = 60 * 60 * 1000
/** How long a deleted document is kept, in ms. */
const deletedMs = 1

/** The passwords for the sign-ins at applications. Those of people are sealed in the store. */
export class ApplicationSecrets {
  readonly #store: DocumentStore
  readonly #keyring: Keyring

  constructor({ store, keyring }: { readonly store: DocumentStore; readonly keyring: Keyring }) {
    this.#store = store
    this.#keyring = keyring
  }

  /**
   * The name and the password of a person at an application.
   * @returns `ask`: the person has to enter them; a text: why there are none, for the log
   * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`, here and below
   */
  async credentials(
    { audience, record }: StoredSession,
    upstream: UpstreamConfig,
    signIn: ApplicationSignInConfig,
  ): Promise<Credentials | 'ask' | { readonly why: string }> {
    const isAsked = signIn.password === 'ask'
    const own = isAsked ? await this.#read({ audience, sub: record.sub }, upstream, signIn) : undefined
    const username = own?.username ?? usernameOf(signIn, record.claims)
    // Without a name, the application would never get the password.
    if (username === undefined && signIn.username !== 'ask') return { why: 'a claim for username is missing' }
    if (username === undefined || (isAsked && own === undefined)) return 'ask'
    const password = own?.password ?? (signIn.password === 'ask' ? undefined : textOf(signIn.password, record.claims))
    if (password === undefined) return { why: 'a claim for password is missing' }
    const wasRefused = own === undefined && (await this.#wasRefused(upstream, { username, password }))
    return wasRefused ? { why: 'the application has refused this password before' } : { username, password }
  }

  /** Keeps what a person has entered. */
  async keep(
    owner: Owner,
    upstream: UpstreamConfig,
    signIn: ApplicationSignInConfig,
    secret: KeptSecret,
  ): Promise<void> {
    const sealed = this.#keyring.seal(JSON.stringify(secret), contextOf(owner, upstream, signIn))
    await this.#change(nameOf(owner, upstream), signIn.rememberMs, () => sealed)
  }

  /** Whether a password of the person is kept for an application. */
  async isKept(owner: Owner, upstream: UpstreamConfig, signIn: ApplicationSignInConfig): Promise<boolean> {
    return (await this.#read(owner, upstream, signIn)) !== undefined
  }

  /** Deletes what a person has entered. */
  async drop(owner: Owner, upstream: UpstreamConfig): Promise<void> {
    await this.#change(nameOf(owner, upstream), deletedMs, (sealed) => sealed && Buffer.alloc(0))
  }

  /** Remembers that an application has refused a password which no person has entered. */
  async noteRefused(upstream: UpstreamConfig, credentials: Credentials): Promise<void> {
    const { name, context } = refusedOf(upstream, credentials)
    const sealed = this.#keyring.seal(JSON.stringify({ digest: sha256(credentials.password) }), context)
    await this.#change(name, refusedForMs, () => sealed)
  }

  async #change(name: string, ttl: number, change: Parameters<typeof changeDocument>[3]): Promise<void> {
    if (await changeDocument(this.#store, name, ttl, change)) return
    throw new GatewayError('ERR_STORE_UNAVAILABLE', 'other processes change the password at the same time')
  }

  async #wasRefused(upstream: UpstreamConfig, credentials: Credentials): Promise<boolean> {
    const { name, context } = refusedOf(upstream, credentials)
    const document = await this.#store.readDocument(name)
    const refused =
      document && this.#keyring.openJson<{ digest: string }>('application_secret', document.sealed, context)
    return typeof refused === 'object' && refused.digest === sha256(credentials.password)
  }

  async #read(
    owner: Owner,
    upstream: UpstreamConfig,
    signIn: ApplicationSignInConfig,
  ): Promise<KeptSecret | undefined> {
    const document = await this.#store.readDocument(nameOf(owner, upstream))
    const context = contextOf(owner, upstream, signIn)
    const secret = document && this.#keyring.openJson<KeptSecret>('application_secret', document.sealed, context)
    return secret === 'newer' ? undefined : secret
  }
}

/** The name at the application. `undefined`: the person enters it, or a claim is missing. */
export function usernameOf({ username }: ApplicationSignInConfig, claims: Claims): string | undefined {
  return username === 'ask' ? undefined : textOf(username, claims)
}

/** The text of a template. `undefined`: a claim has no value that is text or a number. */
export function textOf(template: ClaimTemplate, claims: Claims): string | undefined {
  const parts = template.map((part) => {
    if (typeof part === 'string') return part
    const value = readClaim(claims, part)
    return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
  })
  const isWhole = template.every((part, at) => typeof part === 'string' || parts[at] !== '')
  return isWhole && parts.length > 0 ? parts.join('') : undefined
}

function nameOf({ audience, sub }: Owner, { name }: UpstreamConfig): string {
  return `application secret ${sha256(audience, sub, name)}`
}

/** It opens only for this person, and only to be sent to the same address. */
function contextOf(
  { audience, sub }: Owner,
  { name, externalUrl }: UpstreamConfig,
  { kind, action }: ApplicationSignInConfig,
): string {
  return `gatehouse application secret ${JSON.stringify([audience, sub, name, externalUrl.origin, kind, action])}`
}

/** Sealed, because a hash alone would let a reader of the store guess the password. */
function refusedOf(
  { name }: UpstreamConfig,
  { username }: Credentials,
): { readonly name: string; readonly context: string } {
  const place = sha256('refused', name, username)
  return { name: `refused application secret ${place}`, context: `gatehouse refused application secret ${place}` }
}
