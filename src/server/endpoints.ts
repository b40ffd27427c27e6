import type { IncomingMessage } from 'node:http'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { GatewayConfig } from '../config/model.ts'
import { clientOf } from '../core/addresses.ts'
import { GatewayError, reason, type ErrorCode } from '../core/errors.ts'
import { signInUrl } from '../core/return-to.ts'
import { embeddingPage, isFrame, requestFacts, type RequestFacts } from '../http/request-facts.ts'
import type { TrustedProxies } from '../http/forwarded.ts'
import { ownUrlRefusal } from '../gate/own-urls.ts'
import { startPageOf, upstreamsOfHost } from '../gate/upstreams-of-host.ts'
import { endByFrontChannel } from '../logout/frontchannel.ts'
import { receiveLogoutToken } from '../logout/backchannel.ts'
import type { LogoutParts, SignOutRequest } from '../logout/parts.ts'
import { comeBackSignedOut, isFromThisSite, signOutWithBrowser, signOutWithoutBrowser } from '../logout/sign-out.ts'
import type { RequestRecord } from '../observe/request-record.ts'
import { clearCache, ownAnswerHeaders, type Answer } from '../pages/page.ts'
import type { Pages, RefusalOptions, Visit } from '../pages/pages.ts'
import type { OpenidProvider } from '../provider/openid-provider.ts'
import { closeWhenUnread } from '../http/lingering-close.ts'
import { sessionKey } from '../session/record.ts'
import { finishSignIn, SignInError } from '../signin/callback.ts'
import type { OwnRequest, SignInParts } from '../signin/parts.ts'
import { takeFormPost } from '../signin/authorization-response.ts'
import { initiateByGet, initiateSignIn } from '../signin/initiate.ts'
import { startSignIn, WrongHostError } from '../signin/start.ts'
import { OwnUrlLimits, TooManyRequests } from '../limits/endpoint-limits.ts'
import type { TurnedAway } from '../limits/rejected-clients.ts'

/** No form that is sent to the gateway's own URLs is larger, in bytes. */
const maxFormBytes = 16 * 1024

const wrongHostHint =
  'redirect that host to external_url, or give it an upstream with its own external_url; if a proxy changes Host, have it pass Host on'

export interface AppParts extends SignInParts, LogoutParts {
  readonly provider: OpenidProvider
  readonly sessions: SignInParts['sessions']
  readonly trusted: TrustedProxies
  readonly pages: Pages
  readonly recordOf: (req: IncomingMessage) => RequestRecord
  readonly turnedAway: TurnedAway
}

/** The gateway's own URLs, all of them. The app never listens: requests are handed to `app.routing`. */
export async function createApp(config: GatewayConfig, parts: AppParts): Promise<FastifyInstance> {
  const app = Fastify({
    logger: false,
    bodyLimit: maxFormBytes,
    exposeHeadRoutes: false,
    trustProxy: false,
    // A visitor reads it out to an operator: unlike a number it means one request, whichever process answered it.
    genReqId: (req) => parts.recordOf(req).id,
  })
  readForms(app)
  app.addHook('onSend', async (request, reply, payload) => {
    closeWhenUnread(request.raw, reply.raw)
    const record = parts.recordOf(request.raw)
    if (typeof payload === 'string' && record.method !== 'HEAD') record.bytes = Buffer.byteLength(payload)
  })
  app.setErrorHandler((error, request, reply) => send(reply, errorAnswer(error, request)))
  app.setNotFoundHandler((request, reply) => send(reply, notFound(request)))

  const refused = createRefused(config, parts)
  const at = (name: string) => `${config.reservedPrefix}${name}`
  const urls = createOwnUrls(config, parts)
  const isFormPost = config.provider.response_mode === 'form_post'
  // HEAD tells what GET would (RFC 9110 §9.3.2), where GET does nothing that lasts: a callback and a sign-out happen once.
  const withHead = { exposeHeadRoute: true }
  app.get(at('sign-in'), withHead, urls.signIn)
  app.get(at('initiate-login'), withHead, urls.initiateLogin)
  app.post(at('initiate-login'), urls.initiateLoginByGet)
  app.get(at('callback'), urls.callback)
  if (isFormPost) app.post(at('callback'), urls.formPost)
  app.route({ method: ['GET', 'POST'], url: at('sign-out'), handler: urls.signOut })
  app.get(at('signed-out'), withHead, urls.signedOut)
  app.post(at('backchannel-logout'), urls.backchannelLogout)
  if (config.provider.frontchannelLogout) app.get(at('frontchannel-logout'), urls.frontchannelLogout)
  app.get(at('session'), withHead, urls.session)

  await app.ready()
  return app

  function notFound(request: FastifyRequest): Answer {
    const asPage = factsOf(request).isPage
    const refusal = ownUrlRefusal(request.method, request.url.replace(/\?.*$/s, ''), config)
    if (refusal?.code !== 'ERR_METHOD_NOT_ALLOWED') return refused(request, 'ERR_NO_ROUTE', { asPage })
    return refused(request, refusal.code, { asPage, headers: { Allow: refusal.allowed.join(', ') } })
  }

  function factsOf(request: FastifyRequest): RequestFacts {
    return requestFacts(request.raw, parts.trusted, config.externalUrl.host)
  }

  function errorAnswer(error: unknown, request: FastifyRequest): Answer {
    const code = codeOf(error)
    if (error instanceof TooManyRequests) {
      const headers = { 'Retry-After': String(error.retryAfterSeconds) }
      return refused(request, code, { asPage: factsOf(request).isPage, headers })
    }
    const message = { url: request.url.replace(/\?.*$/s, ''), code, reason: reason(error), request: request.id }
    if (code === 'ERR_INTERNAL') parts.log.error('request.failed', message)
    else parts.log.warn('request.refused', message)
    return refused(request, code, { asPage: factsOf(request).isPage })
  }
}

function createOwnUrls(config: GatewayConfig, parts: AppParts) {
  const refused = createRefused(config, parts)
  const visit = createVisit(config, parts.trusted)
  const limits = new OwnUrlLimits(config.limits.perClient, parts)

  function ownRequest(request: FastifyRequest): {
    readonly facts: RequestFacts
    readonly own: OwnRequest & SignOutRequest
  } {
    const facts = requestFacts(request.raw, parts.trusted, config.externalUrl.host)
    const upstreams = upstreamsOfHost(facts.host, config.upstreams)
    const { headers } = request
    const own = {
      method: request.method,
      url: request.url,
      cookie: facts.cookie,
      host: facts.forwarded.host,
      secFetchSite: asText(headers['sec-fetch-site']),
      secFetchMode: asText(headers['sec-fetch-mode']),
      secFetchDest: asText(headers['sec-fetch-dest']),
      purpose: [headers['sec-purpose'], headers['purpose'], headers['x-moz']].flat().join(', '),
      origin: headers.origin,
      referer: headers.referer,
      externalUrl: upstreams[0]?.externalUrl ?? config.externalUrl,
      cause: parts.recordOf(request.raw).cause,
      applicationCookies: upstreams.flatMap(({ logout }) => logout.cookies),
    }
    return { facts, own }
  }

  function toSignIn(request: FastifyRequest, { forwarded }: RequestFacts, setCookies: readonly string[] = []): Answer {
    return refused(request, 'ERR_UNAUTHENTICATED', {
      signIn: signInUrl(config.reservedPrefix, undefined),
      returnTo: embeddingPage(request.headers, forwarded.host),
      setCookies,
    })
  }

  const signIn = (request: FastifyRequest, reply: FastifyReply) => begin(startSignIn, request, reply)
  const initiateLogin = (request: FastifyRequest, reply: FastifyReply) => begin(initiateSignIn, request, reply)

  async function begin(start: typeof startSignIn, request: FastifyRequest, reply: FastifyReply) {
    const { facts, own } = ownRequest(request)
    // A script cannot sign anybody in; it would leave an attempt behind that never comes back.
    if (isPartOfAPage(request, facts)) return send(reply, toSignIn(request, facts))
    limits.beginSignIn(clientOf(facts.forwarded.clientAddress))
    try {
      const isAgain = new URL(own.url, own.externalUrl).searchParams.has('again')
      return redirect(reply, await start(own, parts), isAgain ? clearCache : {})
    } catch (error) {
      if (error instanceof WrongHostError) return send(reply, toRightAddress(request, facts, own, error))
      if (!(error instanceof GatewayError) || !facts.isPage) throw error
      parts.log.warn('sign_in.not_started', { code: error.code, reason: error.message, request: request.id })
      const returnTo = new URL(own.url, own.externalUrl).searchParams.get('return_to') ?? undefined
      return send(reply, refused(request, error.code, { asPage: true, returnTo }))
    }
  }

  /** The page links to `external_url` only, because anybody can write any `Host`. */
  function toRightAddress(
    request: FastifyRequest,
    { isPage: asPage }: RequestFacts,
    { externalUrl }: OwnRequest,
    { code, message, address: rightAddress }: WrongHostError,
  ): Answer {
    parts.log.warn('sign_in.not_started', { code, reason: message, hint: wrongHostHint, request: request.id })
    const signIn = new URL(signInUrl(config.reservedPrefix, undefined), externalUrl).href
    // The link is followed with a Referer where it leads to the same origin: see requireExternalUrl.
    const headers = { 'Referrer-Policy': 'same-origin' }
    return refused(request, code, { asPage, rightAddress, signIn, headers })
  }

  async function initiateLoginByGet(request: FastifyRequest, reply: FastifyReply) {
    return redirect(reply, initiateByGet(formOf(request), config.reservedPrefix))
  }

  async function formPost(request: FastifyRequest, reply: FastifyReply) {
    return redirect(reply, takeFormPost(formOf(request).toString(), parts))
  }

  async function callback(request: FastifyRequest, reply: FastifyReply) {
    const { facts, own } = ownRequest(request)
    if (isPartOfAPage(request, facts)) return send(reply, toSignIn(request, facts))
    try {
      const client = clientOf(facts.forwarded.clientAddress)
      const { location, setCookies } = await limits.comeBack(client, () => finishSignIn(own, parts))
      // Nothing that the browser keeps may be of another session.
      if (!parts.cookie.isStrict) return redirect(reply, { location, setCookies }, clearCache)
      const next = parts.pages.goOn(location, visit(request), { signedIn: true })
      return send(reply, { ...next, headers: { ...next.headers, ...clearCache, 'Set-Cookie': [...setCookies] } })
    } catch (error) {
      if (!(error instanceof SignInError)) throw error
      const { code, returnTo } = error
      // A callback is good for once.
      const retry = signInUrl(config.reservedPrefix, returnTo)
      return send(reply, refused(request, code, { asPage: true, returnTo, retry }))
    }
  }

  async function signOut(request: FastifyRequest, reply: FastifyReply) {
    const { facts, own } = ownRequest(request)
    if (request.method === 'POST' && !facts.isPage) {
      if (!isFromThisSite(own)) return send(reply, refused(request, 'ERR_CROSS_SITE'))
      const { provider, setCookies } = await signOutWithoutBrowser(own, parts)
      return send(reply, json(200, { signed_out: true, provider }, setCookies, clearCache))
    }
    const outcome = await signOutWithBrowser(own, parts)
    if (outcome.kind === 'redirect') return redirect(reply, outcome, clearCache)
    return send(reply, askToSignOut('asked_elsewhere', request))
  }

  function askToSignOut(why: Parameters<Pages['signOut']>[0], request: FastifyRequest): Answer {
    return parts.pages.signOut(why, [parts.provider.endSessionOrigin ?? []].flat(), visit(request))
  }

  async function signedOut(request: FastifyRequest, reply: FastifyReply) {
    const { stillSignedIn, stateIsOurs, signIn, setCookies } = await comeBackSignedOut(ownRequest(request).own, parts)
    if (!stateIsOurs) parts.log.debug('sign_out.unknown_state', {})
    if (signIn !== undefined && !stillSignedIn) return redirect(reply, { location: signIn, setCookies })
    // A return that nobody here began changes nothing, and must not tell anybody that they are signed out when they are not.
    const answer = stillSignedIn ? askToSignOut('still_signed_in', request) : parts.pages.signedOut(visit(request))
    const cookies = setCookies.length > 0 ? { 'Set-Cookie': [...setCookies] } : {}
    return send(reply, {
      ...answer,
      headers: { ...answer.headers, ...cookies, ...(stillSignedIn ? {} : cleared(request)) },
    })
  }

  /**
   * Whoever comes from a sign-out has a query, and has left a page behind that the browser keeps for Back from now on. The same page
   * is loaded once more, without the query, and its response removes what the browser keeps.
   */
  function cleared({ url }: FastifyRequest): Answer['headers'] {
    return url.includes('?') ? { Refresh: `0; url=${config.reservedPrefix}signed-out` } : clearCache
  }

  async function backchannelLogout(request: FastifyRequest, reply: FastifyReply) {
    const { cause } = parts.recordOf(request.raw)
    const form = formOf(request)
    const client = clientOf(cause.client)
    try {
      await limits.receiveLogoutToken(client, () => receiveLogoutToken(form, cause, parts))
      return await send(reply, { status: 200, headers: ownAnswerHeaders, body: '' })
    } catch (error) {
      if (!(error instanceof GatewayError) || error instanceof TooManyRequests) throw error
      parts.audit.record('logout_token.refused', { code: error.code, reason: error.message }, cause)
      if (error.status === 503) return send(reply, refused(request, error.code))
      parts.recordOf(request.raw).code = error.code
      // §2.8: the members of an OAuth 2.0 error response.
      return send(reply, json(error.status, { error: 'invalid_request', error_description: error.publicText }, []))
    }
  }

  async function frontchannelLogout(request: FastifyRequest, reply: FastifyReply) {
    const { cause } = parts.recordOf(request.raw)
    const { own } = ownRequest(request)
    const asked = new URL(own.url, own.externalUrl).searchParams
    try {
      await limits.endByFrame(clientOf(cause.client), () => endByFrontChannel(asked, cause, parts))
      return await send(reply, parts.pages.sessionOver(parts.provider.frameOrigins, visit(request)))
    } catch (error) {
      if (error instanceof GatewayError && error.code === 'ERR_LOGOUT_REQUEST')
        parts.audit.record('frontchannel_logout.refused', { code: error.code, reason: error.message }, cause)
      throw error
    }
  }

  /** Who is signed in, since when, until when; never a token. Asking does not prolong the session. */
  async function session(request: FastifyRequest, reply: FastifyReply) {
    const { facts, own } = ownRequest(request)
    const id = parts.cookie.read(own.cookie)
    const found = id === undefined ? undefined : await parts.sessions.peek(sessionKey(id))
    if (found === undefined) {
      const setCookies = parts.cookie.isIn(own.cookie) ? parts.cookie.forget(own.cookie, own.applicationCookies) : []
      return send(reply, toSignIn(request, facts, setCookies))
    }
    if (found.isDoubtful === true) return send(reply, toSignIn(request, facts))
    const { sub, claims, created_at, absolute_expires_at } = found.record
    const { iss: _iss, sid: _sid, ...shown } = claims
    const times = {
      signed_in_at: new Date(created_at).toISOString(),
      expires_at: new Date(absolute_expires_at).toISOString(),
    }
    return send(reply, json(200, { sub, ...times, claims: shown }, []))
  }

  return {
    signIn,
    initiateLogin,
    initiateLoginByGet,
    callback,
    formPost,
    frontchannelLogout,
    signOut,
    signedOut,
    backchannelLogout,
    session,
  }
}

/** A refusal that the record of the request knows of. */
function createRefused(config: GatewayConfig, { pages, recordOf, trusted }: AppParts) {
  const visit = createVisit(config, trusted)
  return (request: FastifyRequest, code: ErrorCode, options: Partial<RefusalOptions> = {}): Answer => {
    recordOf(request.raw).code = code
    return pages.refusal(code, { asPage: false, inFrame: isFrame(request.headers), ...visit(request), ...options })
  }
}

function createVisit({ externalUrl, upstreams }: GatewayConfig, trusted: TrustedProxies) {
  return (request: FastifyRequest): Visit => {
    const { host } = requestFacts(request.raw, trusted, externalUrl.host)
    return {
      requestId: request.id,
      acceptLanguage: request.headers['accept-language'],
      home: startPageOf(host, upstreams),
    }
  }
}

/** Forms only, as text; anything else is read, bounded, and counts as an empty form. */
function readForms(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (_request, body, done) =>
    done(null, body),
  )
  app.addContentTypeParser('*', { parseAs: 'string' }, (_request, _body, done) => done(null, undefined))
}

function codeOf(error: unknown): ErrorCode {
  if (error instanceof GatewayError) return error.code
  const status = error instanceof Error && 'statusCode' in error ? error.statusCode : 500
  if (status === 413) return 'ERR_PAYLOAD_TOO_LARGE'
  if (status === 415) return 'ERR_MEDIA_TYPE'
  return typeof status === 'number' && status < 500 ? 'ERR_REQUEST_MALFORMED' : 'ERR_INTERNAL'
}

/** The fields of a form; anything else counts as an empty one. */
function formOf({ body }: FastifyRequest): URLSearchParams {
  return new URLSearchParams(typeof body === 'string' ? body : '')
}

/**
 * What a script asks for, an image, a frame, or what is fetched in advance: nobody signs in by it. It does not count for what a client may do
 * either, or a page of another site that one person has open could use up what everybody at that address may.
 */
function isPartOfAPage({ headers }: FastifyRequest, { isPage }: RequestFacts): boolean {
  // The browser asks again when the person goes there.
  if (isPage) return /\bprefetch\b/i.test(asText(headers['sec-purpose']) ?? '')
  return (
    headers['x-requested-with'] !== undefined ||
    headers['sec-fetch-mode'] !== undefined ||
    headers.accept?.includes('json') === true
  )
}

function send(reply: FastifyReply, { status, headers, body }: Answer): FastifyReply {
  return reply.code(status).headers(headers).send(body)
}

/** 303: whatever the method was, the browser goes on with GET, and no form is ever posted onwards (RFC 9700 §4.12). */
function redirect(
  reply: FastifyReply,
  to: { readonly location: string; readonly setCookies: readonly string[] },
  more: Answer['headers'] = {},
): FastifyReply {
  const cookies = to.setCookies.length > 0 ? { 'Set-Cookie': [...to.setCookies] } : {}
  return send(reply, {
    status: 303,
    headers: { ...ownAnswerHeaders, ...more, ...cookies, Location: to.location },
    body: '',
  })
}

function json(status: number, value: unknown, setCookies: readonly string[], more: Answer['headers'] = {}): Answer {
  const cookies = setCookies.length > 0 ? { 'Set-Cookie': [...setCookies] } : {}
  return {
    status,
    headers: { ...ownAnswerHeaders, ...more, ...cookies, 'Content-Type': 'application/json' },
    body: `${JSON.stringify(value)}\n`,
  }
}

function asText(value: string | string[] | undefined): string | undefined {
  return typeof value === 'object' ? value.join(', ') : value
}
