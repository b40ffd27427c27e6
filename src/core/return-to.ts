import { type StepUp, stepUpParameters } from './step-up.ts'

/** The longest `return_to`, in characters. For some providers, a longer `state` is too long. */
export const maxReturnToLength = 2000

/** What a sign-in has besides its page. */
export interface SignInOptions {
  /** The provider must ask for the account (OpenID Connect Core §3.1.2.1). */
  readonly prompt?: 'login' | undefined
  /** The session of the browser has ended: the response also clears its cache. */
  readonly again?: boolean | undefined
  /** The session of the browser has ended because its person has signed in elsewhere. */
  readonly endedElsewhere?: boolean | undefined
  /** The reference of a kept request. After the sign-in, the person decides about it. */
  readonly kept?: string | undefined
  /** How the person has to authenticate. Only what a rule requires has an effect. */
  readonly stepUp?: StepUp | undefined
}

/** The URL that starts a sign-in and returns to a path with its query, unless that is too long. */
export function signInUrl(
  reservedPrefix: string,
  returnTo: string | undefined,
  { prompt, again = false, endedElsewhere = false, kept, stepUp }: SignInOptions = {},
): string {
  const parameters = {
    again: again ? '1' : undefined,
    ended: endedElsewhere ? 'elsewhere' : undefined,
    prompt,
    kept,
    ...stepUpParameters(stepUp),
    return_to: returnTo,
  }
  return withQuery(`${reservedPrefix}sign-in`, parameters)
}

/**
 * The page where people see their sessions. A sign-in may return to it. `prefix` is the path of the
 * endpoints of a provider, or of those for any provider.
 */
export function sessionsPath(prefix: string): string {
  return `${prefix}sessions`
}

/**
 * The page at the end of a sign-in that an open page has started in another window. A sign-in that
 * leads to it is for a new session, also while the person is signed in.
 */
export function signedInPath(reservedPrefix: string): string {
  return `${reservedPrefix}signed-in`
}

/** The hash of a secret of a frame, in base64url. */
const challengePattern = /^[\w-]{43}$/

/**
 * The challenge of the frame for which a sign-in creates a session; `undefined` for other sign-ins.
 * Such a sign-in leads to the page at the end of a sign-in in another window, with the challenge in
 * its query.
 */
export function challengeOfFrame(reservedPrefix: string, returnTo: string): string | undefined {
  const start = `${signedInPath(reservedPrefix)}?frame=`
  const challenge = returnTo.startsWith(start) ? returnTo.slice(start.length) : ''
  return challengePattern.test(challenge) ? challenge : undefined
}

/** The URL of the page about a kept request. */
export function keptUrl(reservedPrefix: string, reference: string): string {
  return withQuery(`${reservedPrefix}kept-request`, { id: reference })
}

/** The page where a person enters the password for an application. */
export function applicationSignInUrl(prefix: string, upstream: string, returnTo: string, wasRefused: boolean): string {
  const parameters = { upstream, refused: wasRefused ? '1' : undefined, return_to: returnTo }
  return withQuery(`${prefix}application-sign-in`, parameters)
}

/** The URL that signs out and then starts a sign-in. */
export function otherAccountUrl(reservedPrefix: string, returnTo: string | undefined): string {
  return withQuery(`${reservedPrefix}sign-out`, { then: 'sign-in', return_to: returnTo })
}

function withQuery(path: string, parameters: Readonly<Record<string, string | undefined>>): string {
  const query = Object.entries(parameters).flatMap(([name, value]) =>
    value === undefined || value.length > maxReturnToLength ? [] : [`${name}=${encodeURIComponent(value)}`],
  )
  return query.length === 0 ? path : `${path}?${query.join('&')}`
}

/** Where the button leads that removes the cookies of the site. */
export function clearCookiesUrl(prefix: string): string {
  return `${prefix}clear-cookies`
}
