import { GatewayError } from '../core/errors.ts'
import type { EndpointRequest } from '../http/endpoint-request.ts'
import { redirect, type Redirect, type Response } from '../http/response.ts'
import { onlyValue, type SignInParts } from './parts.ts'
import { begin, goToProvider } from './sign-in.ts'

/** A longer hint, in characters, is no hint. */
const longestLoginHint = 1_000

/**
 * `GET initiate-login`: another party, such as a portal, wants the person to be signed in here
 * (OpenID Connect Core §4). It names the issuer, and may name a login hint and the page to go to,
 * which has to be on this origin.
 * @throws {GatewayError} `ERR_SIGN_IN_ISSUER` when `iss` is another issuer, otherwise as {@link
 * begin} does
 */
export function initiateLogin(request: EndpointRequest, parts: SignInParts): Promise<Response> {
  return begin(() => initiate(request, parts), request, parts)
}

async function initiate(request: EndpointRequest, parts: SignInParts): Promise<Redirect> {
  const asked = request.query
  const iss = onlyValue(asked, 'iss')
  if (iss !== parts.provider.config.issuer)
    throw new GatewayError('ERR_SIGN_IN_ISSUER', iss === undefined ? '"iss" is missing' : '"iss" is another issuer')
  const login_hint = onlyValue(asked, 'login_hint')
  const isHint = login_hint !== undefined && login_hint !== '' && login_hint.length <= longestLoginHint
  const wish = {
    return_to: pathOnOrigin(onlyValue(asked, 'target_link_uri'), request.externalUrl),
    login_hint: isHint ? login_hint : undefined,
  }
  return goToProvider(wish, request, parts)
}

/**
 * `POST initiate-login` (§4 wants both): goes on with GET, because the browser sends no `Lax`
 * cookie along with what a page of another site has it post, and who is signed in already has to be
 * known.
 */
export async function initiateLoginPost(
  { form }: EndpointRequest,
  { reservedPrefix }: Pick<SignInParts, 'reservedPrefix'>,
): Promise<Response> {
  const asked = new URLSearchParams()
  for (const name of ['iss', 'login_hint', 'target_link_uri'])
    for (const value of form.getAll(name)) asked.append(name, value)
  return redirect({ location: `${reservedPrefix}initiate-login?${asked.toString()}`, setCookies: [] })
}

/**
 * The path of a URL on this origin, or of one that is a path already; what leads elsewhere is
 * `undefined`.
 */
function pathOnOrigin(target: string | undefined, externalUrl: URL): string | undefined {
  if (target === undefined || !/^https?:\/\//i.test(target)) return target
  if (!URL.canParse(target)) return undefined
  const { origin, username, password, pathname, search } = new URL(target)
  // What stands before "@" is not shown to anybody who looks at a link.
  if (origin !== externalUrl.origin || username !== '' || password !== '') return undefined
  return pathname + search
}
