import { GatewayError } from '../core/errors.ts'
import type { SessionId } from '../core/names.ts'
import { sha256 } from '../core/random.ts'
import type { EndpointRequest } from '../http/endpoint-request.ts'
import { isFromSite } from '../http/requesting-page.ts'
import { clearCache, cookies, empty, type Response } from '../http/response.ts'
import { sessionKey } from '../session/record/record.ts'
import { endOthers, endPrevious, type PreviousSessionsParts } from './previous-sessions.ts'
import { onlyValue } from './query.ts'
import type { SignInParts } from './sign-in-parts.ts'

/** A session that waits for its frame. */
interface ForFrame {
  readonly id: SessionId
  /** The hash of the secret of the frame that has opened the window of the sign-in. */
  readonly challenge: string
}

/** How long a code is valid, in ms. The window gives it to the frame at once. */
const lifetimeMs = 60_000

type SealParts = Pick<SignInParts, 'keyring' | 'clock' | 'sessions'>

/** The code with which the frame gets the session. It works once, and only with the secret. */
export function sealForFrame(session: ForFrame, { keyring, clock, sessions }: SealParts): string {
  const text = JSON.stringify({ ...session, at: clock.now() })
  return keyring.seal(text, contextFor(sessions)).toString('base64url')
}

/**
 * `POST frame-session`: the frame exchanges the code for the cookie of its session. Only the
 * response to a request of the frame can set a cookie for the site of the tab.
 * @throws {GatewayError} `ERR_CROSS_SITE` for a page of another origin; `ERR_SIGN_IN_EXPIRED`,
 * `ERR_SIGN_IN_ENDED`, `ERR_STORE_UNAVAILABLE`
 */
export async function frameSession(
  request: EndpointRequest,
  parts: PreviousSessionsParts & SealParts,
): Promise<Response> {
  const { cookie } = parts
  // Browsers send the session cookie of the window only if all pages around the frame are of this
  // site.
  const isInThisSite = cookie.isIn(request.cookie) && !cookie.isOfFrame(request.cookie)
  if (isInThisSite || !isFromSite('frame', request, [request.externalUrl.origin]))
    throw new GatewayError('ERR_CROSS_SITE', 'a page of another origin asks for the session of a frame')
  const opened = openCode(onlyValue(request.form, 'code') ?? '', parts)
  if (opened === undefined) throw new GatewayError('ERR_SIGN_IN_EXPIRED', 'the code is too old, or not from here')
  const { id, challenge } = opened
  if (sha256(onlyValue(request.form, 'secret') ?? '') !== challenge)
    throw new GatewayError('ERR_SIGN_IN_EXPIRED', 'the code is for another frame')
  if (!(await parts.store.takeOnce(`frame:${challenge}`, 2 * lifetimeMs)))
    throw new GatewayError('ERR_SIGN_IN_EXPIRED', 'the code has been used before')
  const session = await parts.sessions.read(sessionKey(id))
  if (session === undefined) throw new GatewayError('ERR_SIGN_IN_ENDED', 'the session has ended meanwhile')
  const previous = await endPrevious(session.key, session.record, request, parts)
  const setCookies = [...previous, ...(await endOthers(request, parts)), cookie.setForFrame(id)]
  return empty(204, { ...clearCache, ...cookies(setCookies) })
}

function openCode(code: string, { keyring, clock, sessions }: SealParts): ForFrame | undefined {
  if (!/^[\w-]+$/.test(code)) return undefined
  const sealed = Buffer.from(code, 'base64url')
  const opened = keyring.openJson<ForFrame & { readonly at: number }>('sign_in', sealed, contextFor(sessions))
  return opened === undefined || opened === 'newer' || clock.now() - opened.at > lifetimeMs ? undefined : opened
}

function contextFor({ audience }: Pick<SignInParts['sessions'], 'audience'>): string {
  return `gatehouse session of a frame for ${audience}`
}
