import { signedInPath, signInUrl } from '../core/return-to.ts'
import type { EndpointRequest } from '../http/endpoint-request.ts'
import type { Response } from '../http/response.ts'
import { pageContext } from '../pages/pages.ts'
import type { SignInParts } from './parts.ts'
import { isSignedIn } from './sign-in.ts'

/**
 * `GET signed-in`: the end of a sign-in in another window. The page tells the open pages of this
 * origin, and closes its window. Any page can link to this one, so a person who is not signed in
 * gets a page with a link to the sign-in.
 * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
 */
export async function signedIn(request: EndpointRequest, parts: SignInParts): Promise<Response> {
  const { pages, reservedPrefix } = parts
  if (await isSignedIn(request, parts)) return pages.signedInAgain(request)
  return pages.refusal('ERR_UNAUTHENTICATED', {
    ...pageContext(request),
    asPage: request.isPage,
    returnTo: signedInPath(reservedPrefix),
    signIn: signInUrl(reservedPrefix, undefined),
  })
}
