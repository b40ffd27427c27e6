import { GatewayError } from '../core/errors.ts'
import { ownMember } from '../core/json.ts'
import type { SubTag } from '../core/names.ts'
import { keptUrl, signInUrl } from '../core/return-to.ts'
import { type EndpointRequest, isFromThisSite } from '../http/endpoint-request.ts'
import { cookies, redirect, type Response, withHeaders } from '../http/response.ts'
import { withoutParameters } from '../observe/request-record.ts'
import type { ContentKind } from '../pages/messages/messages.ts'
import type { StoredSession } from '../session/record/record.ts'
import { asReference, type FoundRequest, type KeptRequest } from './kept-requests.ts'
import { type KeptParts, markOf, personIn } from './send.ts'

/**
 * `GET kept-request?id=…`: the page about a kept request. It asks the person of the request whether
 * to send it. For another person, it deletes the request.
 * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
 */
export async function keptRequest(request: EndpointRequest, parts: KeptParts): Promise<Response> {
  const { kept, pages, prefix } = parts
  const reference = asReference(request.query.get('id'))
  const person = await personIn(request.cookie, parts)
  if (reference !== undefined && person === undefined)
    return redirect({ location: signInUrl(prefix, request.home, { kept: reference }), setCookies: [] })

  const discarded = person === undefined ? [] : await discardOfOthers(request, person, parts)
  if (reference !== undefined && discarded.includes(reference))
    return withHeaders(
      pages.keptEnd('discarded', request.home, request),
      cookies(discarded.map((each) => kept.expireCookie(each))),
    )
  const found = reference === undefined ? undefined : await kept.find(reference, request.cookie)
  if (found === undefined) return pages.keptEnd('gone', request.home, request)
  // While it is `sending`, only the process that sends it knows whether it was sent.
  if (found.state !== 'kept') return pages.keptEnd(found.state, found.request.returnTo ?? request.home, request)
  const { target, bytes } = found.request
  const content = {
    reference: found.reference,
    decline: `${prefix}kept-request`,
    to: new URL(request.externalUrl.origin + target),
    bytes,
  }
  return pages.kept({ ...content, kind: kindOf(found.request), mark: markOf(found.reference) }, request)
}

/**
 * `POST kept-request`: the person declines. The request is deleted, and the browser returns to the
 * page of the form.
 * @throws {GatewayError} `ERR_CROSS_SITE`, `ERR_STORE_UNAVAILABLE`
 */
export async function declineKeptRequest(request: EndpointRequest, parts: KeptParts): Promise<Response> {
  if (!isFromThisSite(request)) throw new GatewayError('ERR_CROSS_SITE', 'a page of another site declines')
  const { kept, prefix } = parts
  const reference = asReference(request.form.get('id'))
  const person = await personIn(request.cookie, parts)
  const found = reference && (await kept.find(reference, request.cookie))
  if (found === undefined || found === '' || person === undefined || !(await drop(found, person, request, parts)))
    return redirect({ location: keptUrl(prefix, reference ?? ''), setCookies: [] })
  const location = found.request.returnTo ?? request.home
  return redirect({ location, setCookies: [kept.expireCookie(found.reference)] })
}

interface Person {
  readonly session: StoredSession
  readonly tag: SubTag
}

async function drop(
  { key, request: { upstream, target, bytes } }: FoundRequest,
  { session, tag }: Person,
  { cause }: EndpointRequest,
  { kept, audit }: KeptParts,
): Promise<boolean> {
  if (!key.startsWith(`${tag}:`) || !(await kept.drop(key))) return false
  const path = withoutParameters(target.replace(/\?.*$/s, ''))
  const { iss, sub, sid } = session.record
  audit.record('kept_request.declined', { session: session.key, iss, sub, sid, upstream, path, bytes }, cause)
  kept.count('declined')
  return true
}

/** Deletes the kept requests of other people in this browser. Returns the references of these. */
async function discardOfOthers(
  { cookie, cause }: EndpointRequest,
  { session, tag }: Person,
  { kept, audit }: KeptParts,
): Promise<readonly string[]> {
  const others = kept.ofOthers(tag, cookie)
  for (const { key } of others) {
    if (!(await kept.drop(key))) continue
    const { iss, sub, sid } = session.record
    audit.record('kept_request.discarded', { session: session.key, iss, sub, sid }, cause)
    kept.count('discarded')
  }
  return others.map(({ reference }) => reference)
}

function kindOf({ contentType, bytes }: KeptRequest): ContentKind {
  if (bytes === 0) return 'empty'
  const [type] = contentType.toLowerCase().split(';')
  const kinds: Readonly<Record<string, ContentKind>> = {
    'multipart/form-data': 'form_with_files',
    'text/plain': 'text',
    'application/json': 'data',
  }
  return ownMember(kinds, type?.trim() ?? '') ?? 'form'
}
