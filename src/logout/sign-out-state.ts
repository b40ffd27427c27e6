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
  return parts.cookie.withSuffix('signout')
}

/**
 * The value of the cookie: the `state` of the request to the end-session endpoint (RP-Initiated
 * Logout 1.0 §2), and whether another person signs in next.
 */
export function stateToCookie(state: string, other: OtherAccount | undefined): string {
  return other === undefined ? state : `${state}.${Buffer.from(other.returnTo ?? '').toString('base64url')}`
}

/**
 * Reads the value of the cookie. A client may send any value, so the sign-in endpoint checks
 * `returnTo` again.
 */
export function stateFromCookie(value: string): {
  readonly state: string
  readonly other: OtherAccount | undefined
} {
  const [state = '', returnTo] = value.split('.')
  return {
    state,
    other: returnTo === undefined ? undefined : { returnTo: Buffer.from(returnTo, 'base64url').toString() },
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
