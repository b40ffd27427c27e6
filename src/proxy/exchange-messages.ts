// What the messages of an exchange consist of: the request that the upstream gets, the steps that
// its response goes through, and the response of the gateway in its place.
import { type ErrorCode, errorRow } from '../core/error-codes.ts'
import { grpcFields, grpcStatusFor } from '../core/grpc.ts'
import { cookieField, type CookieScope, readSetCookie } from '../http/cookie-jar.ts'
import { grpcTypeOf } from '../http/grpc-request.ts'
import type { RequestBody, StoredContent } from '../http/request-body.ts'
import type { Response } from '../http/response.ts'
import { refusalFor } from '../pages/pages.ts'
import type { RawFields, ResponseHandler, UpstreamRequest } from '../transport/transport.ts'
import { compressionFor } from './compression.ts'
import { ContentRewriter, withKnownCodings } from './content-rewriter.ts'
import { CookieKeeper } from './cookie-keeper.ts'
import type { ExchangeInput } from './exchange-input.ts'
import { logNotRewritten, logUnkeptCookies, logWithheldCookies } from './exchange-log.ts'
import { HeldResponse, type ReplaceableResponse } from './held-response.ts'
import { upstreamHeaders } from './passed-fields.ts'
import type { SessionNotice } from './session-notice.ts'
import type { Upstream, UpstreamAddresses } from './upstream.ts'

/** The request that the upstream gets. `body` is absent when the request has no content. */
export function upstreamRequest(
  input: ExchangeInput,
  upstream: Upstream,
  addresses: UpstreamAddresses,
  body: RequestBody | StoredContent | undefined,
): UpstreamRequest {
  const { req, pass, facts, record, parts, upgrade, content, watch } = input
  const notice = upstream.notice && noticeFor(input, upstream.notice)
  const authorization = pass.application?.authorization
  const readsContent = addresses.content !== undefined || notice !== undefined || watch !== undefined
  if (pass.withheldCookies !== undefined) logWithheldCookies(input, pass.withheldCookies)
  const fields = addresses.fields.request(
    upstreamHeaders(content?.rawHeaders ?? req.rawHeaders, {
      fields: upstream.fields,
      isWithheldCookie:
        upstream.keepsCookies || pass.withheldCookies !== undefined
          ? withheldCookies(input, upstream)
          : parts.isGatewayCookie,
      // Beside a key in another header, it is for the application.
      withholdsAuthorization: (pass.caller !== undefined && pass.caller !== 'key') || authorization !== undefined,
      keptCookies: pass.cookies && cookieField(pass.cookies, cookieScope(input, addresses), parts.clock.now()),
      host: pass.upstream.hostHeader === 'client' ? facts.forwarded.host : pass.upstream.url.host,
      forwarded: facts.forwarded,
      requestId: record.id,
      loopMarker: upstream.loopMarker,
      trace: record.trace,
    }),
    facts.forwarded.host,
  )
  return {
    method: facts.method,
    path: addresses.fields.path(facts.target.path, facts.target.query),
    headers: readsContent ? withKnownCodings(fields) : fields,
    identity: authorization === undefined ? pass.identity : [...pass.identity, 'Authorization', authorization],
    body,
    upgrade: upgrade?.protocols,
    session: pass.session,
    client: facts.forwarded.clientAddress,
  }
}

/** Which cookies of the client the upstream does not get. */
function withheldCookies({ pass, parts }: ExchangeInput, upstream: Upstream): (name: string) => boolean {
  const { isGatewayCookie } = parts
  // A client may send thousands of cookies.
  const foreign = new Set(pass.withheldCookies)
  return (name) => isGatewayCookie(name) || upstream.isWithheldCookie(name) || foreign.has(name)
}

/** Cookies have paths of the upstream, which may differ from those that clients use. */
function cookieScope({ facts: { host, target } }: ExchangeInput, { fields }: UpstreamAddresses): CookieScope {
  return { host, path: fields.path(target.path, '') }
}

/**
 * The notice in a page that a person has opened. A page without a session has no end to announce,
 * and a program with a key has no session cookie.
 */
function noticeFor({ pass, facts }: ExchangeInput, notice: SessionNotice): SessionNotice | undefined {
  return pass.session !== undefined && pass.caller === undefined && facts.isPage ? notice : undefined
}

/**
 * The steps of a response: it may be replaced, kept cookies are taken out, and addresses replaced,
 * before `last` gets it.
 */
export function responseSteps(
  last: ReplaceableResponse,
  input: ExchangeInput,
  upstream: Upstream,
  addresses: UpstreamAddresses,
): ResponseHandler {
  const { watch } = input
  const handler = readSteps(last, input, upstream, addresses)
  return watch === undefined ? handler : new HeldResponse(handler, watch, last)
}

function readSteps(
  last: ResponseHandler,
  input: ExchangeInput,
  upstream: Upstream,
  addresses: UpstreamAddresses,
): ResponseHandler {
  const { req, pass, parts, facts } = input
  const { session } = pass
  const notice = upstream.notice && noticeFor(input, upstream.notice)
  const { compress } = pass.upstream
  const compression =
    compress === false ? undefined : compressionFor(compress, pass, facts, req.headers['accept-encoding'])
  const handler =
    compression !== undefined || addresses.content !== undefined || notice !== undefined
      ? new ContentRewriter(last, {
          addresses: addresses.content,
          notice,
          compression,
          isHead: facts.method === 'HEAD',
          onSkip: (reason) => logNotRewritten(input, reason, upstream),
        })
      : last
  if (!upstream.keepsCookies && (session === undefined || !parts.notesCookies)) return handler
  const { host, target } = facts
  return new CookieKeeper(handler, {
    isKept: (name) => upstream.isKeptCookie(name),
    isNoted: parts.isNotedCookie,
    keep: session === undefined ? undefined : (cookies) => parts.keepCookies(session, pass.upstream.name, cookies),
    onLost: (names) => logUnkeptCookies(input, names, 'lost', upstream),
    onRejected: (names) => logUnkeptCookies(input, names, 'rejected', upstream),
    read: (text) => readSetCookie(addresses.fields.ownCookie(text), cookieScope(input, addresses), parts.clock.now()),
    readInBrowser: (text) =>
      readSetCookie(addresses.fields.response('set-cookie', text), { host, path: target.path }, parts.clock.now()),
  })
}

/** The response of the gateway when there is none of the upstream. */
export function refusalOf({ req, facts, record, parts, content }: ExchangeInput, code: ErrorCode): Response {
  const options = refusalFor(facts, req.headers)
  return parts.pages.refusal(code, {
    ...options,
    grpcType: grpcTypeOf(req),
    requestId: record.id,
    acceptLanguage: req.headers['accept-language'],
    kept: content?.kept,
    retry: content?.kept === undefined ? options.retry : undefined,
  })
}

/** Adds the status of gRPC for an error to a response that has begun. */
export function addGrpcStatus({ res, record }: ExchangeInput, code: ErrorCode): void {
  const { status, text } = errorRow(code)
  const trailers = grpcFields(grpcStatusFor(status), text)
  record.grpcStatus = trailers['grpc-status']
  res.addTrailers(Object.entries(trailers))
}

export function grpcStatusIn(fields: RawFields): string | undefined {
  const at = fields.findIndex((text, at) => at % 2 === 0 && text.toLowerCase() === 'grpc-status')
  return at < 0 ? undefined : fields[at + 1]
}
