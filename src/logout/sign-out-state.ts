import { signInUrl } from '../core/return-to.ts'
import type { EndpointRequest } from '../http/endpoint-request.ts'
import type { Response } from '../http/response.ts'
import type { LogoutParts } from './parts.ts'

/** Another person is to sign in next; `returnTo` is the page to go to then. */
export interface OtherAccount {
  readonly returnTo: string | undefined
}

/** `sign-out?then=sign-in&return_to=…`. */
export function wantsOtherAccount({ query }: EndpointRequest): OtherAccount | undefined {
  return query.get('then') === 'sign-in' ? { returnTo: query.get('return_to') ?? undefined } : undefined
}

/**
 * Where the other person signs in. `prompt=login`, because the provider may still know the first
 * one.
 */
export function signInAsOther(
  { returnTo }: OtherAccount,
  { reservedPrefix }: Pick<LogoutParts, 'reservedPrefix'>,
): string {
  return signInUrl(reservedPrefix, returnTo, 'login')
}

/** The cookie that remembers a sign-out while the browser is at the provider. */
export function stateCookie(parts: LogoutParts) {
  return parts.cookie.beside('signout')
}

/**
 * The value of the cookie: `state` of the request to the end-session endpoint (RP-Initiated Logout
 * 1.0 §2), and what comes next.
 */
export function rememberedState(state: string, other: OtherAccount | undefined): string {
  return other === undefined ? state : `${state}.${Buffer.from(other.returnTo ?? '').toString('base64url')}`
}

/**
 * Reads the value of the cookie. Browsers can send any cookie: the sign-in checks `returnTo`
 * itself.
 */
export function readRememberedState(value: string): {
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
  why: 'asked_elsewhere' | 'still_signed_in',
  request: EndpointRequest,
  { pages, provider }: LogoutParts,
): Response {
  return pages.signOut(why, [provider.endSessionOrigin ?? []].flat(), request)
}
