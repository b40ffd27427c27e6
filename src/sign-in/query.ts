import type { ProviderConfig } from '../config/model/provider.ts'
import { GatewayError } from '../core/errors.ts'
import { challengeOfFrame, maxReturnToLength, sessionsPath, signedInPath } from '../core/return-to.ts'
import type { Site } from '../core/site.ts'
import { type StepUp, stepUpParameters } from '../core/step-up.ts'
import { isReserved } from '../http/request-facts.ts'
import { canonicalTarget } from '../http/request-target.ts'
import type { SignInParts } from './sign-in-parts.ts'

/** The value of a query parameter; `undefined` also when it is repeated, and so unclear. */
export function onlyValue(parameters: URLSearchParams, name: string): string | undefined {
  const [value, ...more] = parameters.getAll(name)
  return more.length === 0 ? value : undefined
}

/** The longest value of a parameter of `link_params`, in characters. A longer one is ignored. */
const longestLinkParam = 500

/** The parameters in the query of a sign-in that `link_params` of the provider allows. */
export function linkParamsOf(
  query: URLSearchParams,
  { linkParams }: Pick<ProviderConfig, 'linkParams'>,
): Readonly<Record<string, string>> {
  const found = linkParams.flatMap((name) => {
    const value = onlyValue(query, name)
    return value === undefined || value === '' || value.length > longestLinkParam ? [] : [[name, value] as const]
  })
  return Object.fromEntries(found)
}

/** The step-up in the query of a sign-in: only that of a rule, because any site may link here. */
export function stepUpOf(query: URLSearchParams, { stepUps }: Pick<SignInParts, 'stepUps'>): StepUp | undefined {
  const names = ['acr_values', 'max_age'] as const
  return stepUps.find((stepUp) => {
    const parameters = stepUpParameters(stepUp)
    return names.every((name) => onlyValue(query, name) === parameters[name])
  })
}

type Parts = Pick<SignInParts, 'reservedPrefix' | 'isLogoutLink'> & Partial<Pick<SignInParts, 'site' | 'prefix'>>

/**
 * The page to return to after a sign-in: a path on this origin, or the URL of a page on another
 * host of the site. Everything else becomes `/`, so that a sign-in cannot lead to another site (RFC
 * 9700 §4.11). So does a path that is not a page of an application: a logout link, and an endpoint
 * except two pages. With a `Strict` cookie, the browser continues from a page of this origin, so a
 * link on another site could otherwise sign a person out.
 */
export function returnToOrHome(value: string | undefined, externalUrl: URL, parts: Parts): string {
  const { site } = parts
  const origin = value === undefined || site === undefined ? undefined : originIn(value, site)
  if (value === undefined || value.length - (origin?.length ?? 0) > maxReturnToLength) return '/'
  if (origin === undefined || origin === externalUrl.origin)
    return pathOrHome(origin === undefined ? value : value.slice(origin.length), externalUrl, parts)
  return origin + pathOrHome(value.slice(origin.length), new URL(origin), parts)
}

/**
 * The origin of an absolute URL, if it is that of a host of the site, in its exact spelling:
 * without a user name, a backslash, a default port, a dot at the end or a letter in upper case.
 */
function originIn(value: string, site: Site): string | undefined {
  const origin = /^https?:\/\/[\da-z._:-]+(?=\/)/.exec(value)?.[0]
  if (origin === undefined || !URL.canParse(origin)) return undefined
  const { hostname } = new URL(origin)
  return site.originOf(hostname) === origin ? origin : undefined
}

/** A path on an origin, or `/`. */
export function pathOrHome(value: string, externalUrl: URL, parts: Parts): string {
  const { reservedPrefix, prefix = reservedPrefix } = parts
  if ([signedInPath(reservedPrefix), sessionsPath(reservedPrefix), sessionsPath(prefix)].includes(value)) return value
  if (challengeOfFrame(reservedPrefix, value) !== undefined) return value
  if (!value.startsWith('/') || !URL.canParse(value, externalUrl.origin)) return '/'
  // The URL parser works like that of browsers, so "/\evil" and "//evil" become another origin.
  const target = new URL(value, externalUrl)
  if (target.origin !== externalUrl.origin) return '/'
  // "/.//evil" keeps the origin, but its path "//evil" alone would lead to another one.
  if (target.pathname.startsWith('//')) return '/'
  // Also when the request handler would reject the path.
  if (`${target.pathname}/`.toLowerCase().startsWith(reservedPrefix.toLowerCase())) return '/'
  // The parser keeps a backslash in a query, but a URI must not contain one (RFC 3986 §2).
  const path = target.pathname + target.search.replaceAll('\\', '%5C')
  return mayReturnTo(path, externalUrl.hostname, parts) ? path : '/'
}

/** Reads the path as the request handler does: `/%2egatehouse/` is the reserved prefix too. */
function mayReturnTo(path: string, host: string, { reservedPrefix, isLogoutLink }: Parts): boolean {
  try {
    const target = canonicalTarget(path)
    return !isReserved(target, reservedPrefix) && !isLogoutLink(host, target)
  } catch (error) {
    // The request handler rejects such a path, so it leads nowhere.
    if (error instanceof GatewayError) return true
    throw error
  }
}
