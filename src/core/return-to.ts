/**
 * The longest `return_to`, in characters. The `state` parameter contains it, and would become too
 * long for some providers.
 */
export const maxReturnToLength = 2000

/**
 * The URL that starts a sign-in and returns to `returnTo` (a path with its query), which is omitted
 * when it is too long. `login`: the provider must ask for the account (`prompt`, OpenID Connect
 * Core §3.1.2.1).
 */
export function signInUrl(reservedPrefix: string, returnTo: string | undefined, prompt?: 'login'): string {
  return withQuery(`${reservedPrefix}sign-in`, { prompt, return_to: returnTo })
}

/**
 * The sign-in URL for a browser whose session has ended. The response also clears the cache of the
 * browser.
 */
export function signInAgainUrl(reservedPrefix: string, returnTo: string): string {
  return withQuery(`${reservedPrefix}sign-in`, { again: '1', return_to: returnTo })
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
