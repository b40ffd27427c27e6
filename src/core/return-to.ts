/**
 * Longer targets, in characters, would make the `state` parameter, which carries them, too long for
 * some providers.
 */
export const longestReturnTo = 2000

/**
 * The URL below the reserved prefix that starts a sign-in, which ends at `returnTo` (a path with
 * its query); one that is too long is left out. `login`: the provider is to ask who it is, also
 * when it knows (OpenID Connect Core §3.1.2.1, `prompt`).
 */
export function signInUrl(reservedPrefix: string, returnTo: string | undefined, prompt?: 'login'): string {
  return withQuery(`${reservedPrefix}sign-in`, { prompt, return_to: returnTo })
}

/**
 * The same for a browser whose session has ended: the response also removes the pages that the
 * browser keeps.
 */
export function signInAgainUrl(reservedPrefix: string, returnTo: string): string {
  return withQuery(`${reservedPrefix}sign-in`, { again: '1', return_to: returnTo })
}

/** The URL below the reserved prefix that signs out, and then asks who it is to be. */
export function otherAccountUrl(reservedPrefix: string, returnTo: string | undefined): string {
  return withQuery(`${reservedPrefix}sign-out`, { then: 'sign-in', return_to: returnTo })
}

function withQuery(path: string, parameters: Readonly<Record<string, string | undefined>>): string {
  const query = Object.entries(parameters).flatMap(([name, value]) =>
    value === undefined || value.length > longestReturnTo ? [] : [`${name}=${encodeURIComponent(value)}`],
  )
  return query.length === 0 ? path : `${path}?${query.join('&')}`
}
