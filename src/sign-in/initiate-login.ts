import { GatewayError } from '../core/errors.ts'
import type { EndpointRequest } from '../http/endpoint-request.ts'
import { redirect, type Redirect, type Response } from '../http/response.ts'
import { onlyValue } from './query.ts'
import type { SignInParts } from './sign-in-parts.ts'
import { begin, goToProvider } from './sign-in.ts'

/** The longest login hint, in characters. A longer one is ignored. */
const longestLoginHint = 1_000

/**
 * `GET initiate-login`: a third party, such as a portal, starts a sign-in (OpenID Connect Core §4).
 * The request names the issuer, and perhaps a login hint and a target page on this origin.
 * @throws {GatewayError} `ERR_SIGN_IN_ISSUER` when `iss` is another issuer, and the errors of
 * {@link begin}
 */
export function initiateLogin(request: EndpointRequest, parts: SignInParts): Promise<Response> {
  return begin(() => initiate(request, parts), request, parts)
}

async function initiate(request: EndpointRequest, parts: SignInParts): Promise<Redirect> {
  const { query } = request
  const iss = onlyValue(query, 'iss')
  if (iss !== parts.provider.config.issuer)
    throw new GatewayError('ERR_SIGN_IN_ISSUER', iss === undefined ? '"iss" is missing' : '"iss" is another issuer')
  const login_hint = onlyValue(query, 'login_hint')
  const isHint = login_hint !== undefined && login_hint !== '' && login_hint.length <= longestLoginHint
  const options = {
    return_to: targetOf(onlyValue(query, 'target_link_uri'), request.externalUrl, parts),
    parameter: 'target_link_uri' as const,
    login_hint: isHint ? login_hint : undefined,
  }
  return goToProvider(options, request, parts)
}

/**
 * `POST initiate-login` (§4 requires both methods). Redirects to the GET request: with a form from
 * a page of another site, a browser does not send the `Lax` session cookie.
 */
export async function initiateLoginPost(
  { form }: EndpointRequest,
  { prefix }: Pick<SignInParts, 'prefix'>,
): Promise<Response> {
  const parameters = new URLSearchParams()
  for (const name of ['iss', 'login_hint', 'target_link_uri'])
    for (const value of form.getAll(name)) parameters.append(name, value)
  return redirect({ location: `${prefix}initiate-login?${parameters.toString()}`, setCookies: [] })
}

/**
 * The target page: a path, or the URL of a host that shares the session. Of a URL on this origin
 * the path remains. A URL on another origin gives `undefined`.
 */
function targetOf(target: string | undefined, externalUrl: URL, { site }: SignInParts): string | undefined {
  if (target === undefined || !/^https?:\/\//i.test(target)) return target
  if (!URL.canParse(target)) return undefined
  const { origin, hostname, username, password, pathname, search } = new URL(target)
  // A user name before "@" may mislead a person who reads the link.
  if (username !== '' || password !== '') return undefined
  if (origin === externalUrl.origin) return pathname + search
  return site?.originOf(hostname) === origin ? origin + pathname + search : undefined
}
