import { signInUrl } from '../core/return-to.ts'
import type { EndpointRequest } from '../http/endpoint-request.ts'
import type { Response } from '../http/response.ts'
import type { LogoutParts } from './parts.ts'

/** After the sign-out, another person signs in and then goes to the page `returnTo`. */
export interface OtherAccount {
  readonly returnTo: string | undefined
}

/** Reads `sign-out?then=sign-in&return_to=…`; `undefined` when it is a plain sign-out. */
export function otherAccountOf({ query }: EndpointRequest): OtherAccount | undefined {
  return query.get('then') === 'sign-in' ? { returnTo: query.get('return_to') ?? undefined } : undefined
}

/**
 * The URL where the other person signs in. It has `prompt=login`, because the provider may still
 * have a session of the first person.
 */
export function signInAsOther(
  { returnTo }: OtherAccount,
  { reservedPrefix }: Pick<LogoutParts, 'reservedPrefix'>,
): string {
  return signInUrl(reservedPrefix, returnTo, { prompt: 'login' })
}

/** The cookie that holds the state of a sign-out while the browser is at the provider. */
export function stateCookie(parts: LogoutParts) {
  return parts.cookie.withSuffixForSite('signout')
}

/** A sign-out while the browser is at the provider. */
export interface SignOutState {
  /** The `state` of the request to the end-session endpoint (RP-Initiated Logout 1.0 §2). */
  readonly state: string
  /** Another person signs in next. */
  readonly other: OtherAccount | undefined
  /** The host (without port) where the sign-out began, if it is another one than this. */
  readonly host: string | undefined
}

/** The value of the cookie. */
export function stateToCookie({ state, other, host }: SignOutState): string {
  const returnTo = other === undefined ? '' : Buffer.from(other.returnTo ?? '/').toString('base64url')
  if (host !== undefined) return `${state}.${returnTo}.${host}`
  return returnTo === '' ? state : `${state}.${returnTo}`
}

/**
 * Reads the value of the cookie. A client may send any value, so `host` must be checked, and the
 * sign-in endpoint checks `returnTo` again.
 */
export function stateFromCookie(value: string): SignOutState {
  const [state = '', returnTo = '', ...labels] = value.split('.')
  return {
    state,
    other: returnTo === '' ? undefined : { returnTo: Buffer.from(returnTo, 'base64url').toString() },
    host: labels.length === 0 ? undefined : labels.join('.'),
  }
}

/** A page with a button that signs out. */
export function askToSignOut(
  reason: 'asked_elsewhere' | 'still_signed_in',
  request: EndpointRequest,
  { pages, provider, prefix }: LogoutParts,
): Response {
  return pages.signOut(reason, { prefix, formTargets: [provider.endSessionOrigin ?? []].flat() }, request)
}
