import type { Claims } from '../../core/claims.ts'
import { GatewayError } from '../../core/errors.ts'
import { sha256 } from '../../core/random.ts'
import { signInLifetimeMs } from '../../core/sign-in-lifetime.ts'
import { type EndedBy } from '../live/endings.ts'
import { changeDocument, type DocumentStore } from '../store/documents.ts'
import type { SessionStore } from '../store/store.ts'

/** Who ends the sessions of an e-mail address. */
type EmailEndedBy = Extract<EndedBy, 'administrator' | 'signal'>

/**
 * Added to the time of an ending when it is by an administrator, in ms. Other endings have a whole
 * number. Version 0.1.0 reads any number as the time, so old and new replicas work together.
 */
const byAdministratorMs = 0.5

/**
 * Remembers that the sessions of an e-mail address end, like a tombstone of a `sub`: before they
 * are searched, so a sign-in that ends meanwhile finds it, or its session is found.
 * @param at in the store's time; absent: now
 * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
 */
export async function rememberEmailEnding(
  email: string,
  audience: string,
  by: EmailEndedBy,
  store: DocumentStore & Pick<SessionStore, 'time'>,
  at?: number,
): Promise<void> {
  const latest = at ?? (await store.time()).latest
  const written = Buffer.from(String(by === 'administrator' ? latest + byAdministratorMs : latest))
  const isRemembered = await changeDocument(store, documentNameOf(email, audience), 2 * signInLifetimeMs, (sealed) =>
    sealed !== undefined && endingIn(sealed).at >= latest ? undefined : written,
  )
  if (isRemembered) return
  throw new GatewayError('ERR_STORE_UNAVAILABLE', 'other processes write about this e-mail address at the same time')
}

/** Who has ended the sessions of an e-mail address since `begun_at`, in the store's time, if so. */
export async function emailEndedSince(
  email: string,
  audience: string,
  begun_at: number,
  store: Pick<DocumentStore, 'readDocument'>,
): Promise<EmailEndedBy | undefined> {
  const document = await store.readDocument(documentNameOf(email, audience))
  const ending = document && endingIn(document.sealed)
  return ending !== undefined && begun_at <= ending.at ? ending.by : undefined
}

/** The verified e-mail address in the claims of a session. */
export function verifiedEmailOf(claims: Claims, renamed: Readonly<Record<string, string>>): string | undefined {
  const email = emailOf(claims, renamed)
  const isVerified = claims[renamed['email_verified'] ?? 'email_verified']
  // Some providers send `email_verified` as text.
  if (email === undefined || (isVerified !== true && isVerified !== 'true')) return undefined
  return email
}

/** The e-mail address in the claims of a session, verified or not. */
export function emailOf(claims: Claims, renamed: Readonly<Record<string, string>>): string | undefined {
  const email = claims[renamed['email'] ?? 'email']
  return typeof email === 'string' ? email : undefined
}

/**
 * @throws {GatewayError} `ERR_STORE_UNAVAILABLE` when a newer version wrote it in another format
 */
function endingIn(document: Uint8Array): { readonly at: number; readonly by: EmailEndedBy } {
  const at = Number(Buffer.from(document).toString('utf8'))
  if (!Number.isNaN(at)) return { at, by: Number.isInteger(at) ? 'signal' : 'administrator' }
  throw new GatewayError('ERR_STORE_UNAVAILABLE', 'a newer version has stored an ending in another format')
}

/** The store sees only a hash of the address, in lower case: an administrator may write any. */
function documentNameOf(email: string, audience: string): string {
  return `ending of ${sha256(audience, email.toLowerCase())}`
}
