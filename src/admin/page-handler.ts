import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { AdminPages } from '../../packages/admin-page/page.ts'
import type { AdminPageConfig } from '../config/model/gateway.ts'
import { clientOf, ipAddress } from '../core/addresses.ts'
import { basicCredentials } from '../core/credentials.ts'
import { reason } from '../core/errors.ts'
import { objectIn } from '../core/json.ts'
import { isSameSecret } from '../core/random.ts'
import { retryAfter } from '../core/repeating.ts'
import { mediaTypeOf, readContent } from '../http/read-content.ts'
import { isFromSite } from '../http/requesting-page.ts'
import { json, ownHeaders, type Response } from '../http/response.ts'
import { ClientBudget } from '../limits/client-budget.ts'
import { RejectedClients } from '../limits/rejected-clients.ts'
import type { Log } from '../observe/log.ts'
import { overviewOf, recentConnections, type OverviewParts } from './overview.ts'
import { PageStreams } from './page-streams.ts'
import type { PersonSelection } from './selection.ts'
import { SessionCounts } from './session-counts.ts'
import { notEnded } from './sessions.ts'
import { sessionColumns, type SessionQuery } from './view.ts'

const maxContentBytes = 4 * 1024
/** How many wrong tokens an address may send before it has to wait. */
const wrongTokenLimit = { count: 10, perMs: 60_000 }

export interface AdminPageParts extends Omit<OverviewParts, 'counts'> {
  readonly page: AdminPageConfig
  readonly log: Log
}

/**
 * The administration page. Other sites that an administrator visits cannot use it:
 * - It responds only under host names that no other site can have (DNS rebinding).
 * - It responds only to navigation and to its own forms (Fetch Metadata).
 * - It opens an event stream only for its own script.
 * - It ends a session only for a form that the page itself contained, or for JSON of a program,
 *   which pages of other sites cannot send without its consent (Fetch, "CORS-preflight request").
 * @returns a handler, which returns `undefined` when the request is not for the page
 */
export function createAdminPage(parts: AdminPageParts): (req: IncomingMessage) => Promise<Response> | undefined {
  const { log } = parts
  const authenticate = createAuthentication(parts)
  const connections = recentConnections()
  const withCounts = { ...parts, counts: new SessionCounts() }
  const overview = (query: SessionQuery) => overviewOf(query, { ...withCounts, connections })
  const streams = new PageStreams({ ...parts, overview })
  const pages = () => new AdminPages(parts.running().pages)
  const overviewPage = async (req: IncomingMessage) => pages().overview(await overviewOf(queryOf(req), withCounts))
  const routes: Readonly<Record<string, PageRoute>> = {
    '/': { methods: ['GET', 'HEAD'], mayUse: isSameSite, respond: overviewPage },
    '/events': { methods: ['GET'], mayUse: isOwnStream, respond: async (req) => streams.open(queryOf(req)) },
    '/sessions/end': {
      methods: ['POST'],
      mayUse: isSameSite,
      respond: async (req) => endSessions(req, pages(), parts),
    },
  }

  return (req) => {
    const path = (req.url ?? '').replace(/\?.*$/s, '')
    const route = Object.hasOwn(routes, path) ? routes[path] : undefined
    return route && respond(req, route)
  }

  async function respond(req: IncomingMessage, route: PageRoute): Promise<Response> {
    try {
      return refusalOf(req, route, parts.page) ?? authenticate(req) ?? (await route.respond(req))
    } catch (error) {
      log.error('request.failed', { reason: reason(error), where: 'admin.page' })
      return plain(500, 'Internal error. The log has the reason.')
    }
  }
}

interface PageRoute {
  readonly methods: readonly string[]
  readonly mayUse: (req: IncomingMessage) => boolean
  respond(req: IncomingMessage): Promise<Response>
}

/** `POST /sessions/end`: of a form of the page, or of a program. */
async function endSessions(req: IncomingMessage, pages: AdminPages, parts: AdminPageParts): Promise<Response> {
  const peer = peerOf(req)
  const content = await readContent(req, maxContentBytes)
  const text = typeof content === 'string' ? '' : content.toString()
  const type = mediaTypeOf(req)
  if (type === 'application/json') return endPerson(text, peer, parts)
  const order = new URLSearchParams(type === 'application/x-www-form-urlencoded' ? text : '').get('order') ?? ''
  const outcome = parts.processes.call('end', order, peer)
  return pages.outcome(await outcome.catch((error: unknown) => notEnded(reason(error))))
}

/** `POST /sessions/end` of a program: the content is `{ "sub" | "email" | "sid": … }`. */
async function endPerson(content: string, peer: string, { processes, log }: AdminPageParts): Promise<Response> {
  const person = personIn(content)
  if (person === undefined)
    return json(400, { error: 'the content must be an object with one of sub, email and sid, which is a text' })
  try {
    const { ended, atProvider, failure } = await processes.call('endPerson', person, peer)
    return json(failure === undefined ? 200 : 503, { ended, at_provider: atProvider, failure })
  } catch (error) {
    log.warn('admin.not_ended', { reason: reason(error), peer })
    return json(503, { ended: 0, failure: reason(error) })
  }
}

function personIn(content: string): PersonSelection | undefined {
  const [[name, text] = ['', ''], ...more] = Object.entries(objectIn(content) ?? {})
  const isValid = more.length === 0 && typeof text === 'string' && text !== ''
  return isValid && ['sub', 'email', 'sid'].includes(name) ? { [name]: text } : undefined
}

/** The refusal of a request by its host name, method or origin, or `undefined`. */
function refusalOf(req: IncomingMessage, route: PageRoute, { hosts }: AdminPageConfig): Response | undefined {
  const { methods, mayUse } = route
  if (!isAllowedHost(req.headers.host, hosts))
    return plain(421, 'This page is not available under this host name. Add the name to admin.page.hosts.')
  if (!methods.includes(req.method ?? '')) return plain(405, 'Method not allowed.', { Allow: methods.join(', ') })
  if (!mayUse(req))
    return plain(
      403,
      'Another site requested this page. Open it directly. A program sends Content-Type: application/json.',
    )
  return undefined
}

/**
 * Checks the token. An address with too many wrong tokens has to wait, and is not told whether its
 * next token is right. Other addresses are not affected.
 * @returns a function that returns the refusal, or `undefined` for the right token
 */
function createAuthentication({
  page: { token },
  log,
  clock,
}: AdminPageParts): (req: IncomingMessage) => Response | undefined {
  if (token === undefined) return () => undefined
  const wrong = new ClientBudget(wrongTokenLimit, clock)
  const rejectedClients = new RejectedClients(log, clock)
  const tokenRequired = plain(401, 'The password is the value of admin.page.token. The user name may be anything.', {
    'WWW-Authenticate': 'Basic realm="Gatehouse administration", charset="UTF-8"',
  })
  return (req) => {
    const given = basicCredentials(req.headers.authorization)
    if (given === undefined || given === 'malformed') return tokenRequired
    const client = clientOf(ipAddress(peerOf(req)) ?? 'unknown')
    const waitMs = wrong.waitMs(client)
    if (waitMs > 0) {
      rejectedClients.note('admin.page.token', client, 'A client at this address guesses the password of the page.')
      return plain(429, 'This address has sent too many wrong passwords.', retryAfter(waitMs))
    }
    if (isSameSecret(given.secret, token)) return undefined
    wrong.take(client)
    log.warn('admin.wrong_token', { peer: peerOf(req) })
    return tokenRequired
  }
}

function peerOf({ socket }: IncomingMessage): string {
  return socket.remoteAddress ?? 'unknown'
}

/**
 * Whether the host name is an IP address, `localhost` or configured. A site that points its own
 * name to the address of this page (DNS rebinding) has another host name.
 */
function isAllowedHost(host: string | undefined, hosts: readonly string[]): boolean {
  if (host === undefined || !/^[\w.:[\]-]+$/.test(host) || !URL.canParse(`http://${host}`)) return false
  const { hostname } = new URL(`http://${host}`)
  return hostname === 'localhost' || isIP(hostname.replace(/^\[(.*)\]$/, '$1')) !== 0 || hosts.includes(hostname)
}

/**
 * Whether the administrator opens the page or uses its form. Requests of other pages in the same
 * browser are recognized by Fetch Metadata, or else by `Origin`.
 */
function isSameSite(req: IncomingMessage): boolean {
  const { method, headers } = req
  const { origin, host } = headers
  const secFetchSite = headers['sec-fetch-site']
  if (method === 'POST')
    return isFromSite(mediaTypeOf(req) === 'application/json' ? 'admin_json' : 'admin_form', { secFetchSite, origin }, [
      `http://${host}`,
      `https://${host}`,
    ])
  if (isFromSite('admin_page', { secFetchSite }, [])) return true
  // A link on another page may lead here, because that page cannot read the page that it opens.
  return headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document'
}

/**
 * Whether the script of the page opens its event stream. Browsers send no Fetch Metadata to an
 * address without TLS that is not on this machine. There, elements of other sites such as `<img>`
 * cannot send this `Accept`, and their scripts send `Origin`.
 */
function isOwnStream({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  const secFetchSite = headers['sec-fetch-site']
  const isOwn = isFromSite('admin_stream', { secFetchSite, origin: headers.origin }, [])
  return isOwn && (secFetchSite !== undefined || headers.accept === 'text/event-stream')
}

function queryOf({ url = '' }: IncomingMessage): SessionQuery {
  const params = new URL(url, 'http://localhost').searchParams
  const text = (name: string) => params.get(name)?.trim() ?? ''
  const sort = sessionColumns.flatMap((column) => [column, `-${column}` as const]).find((one) => one === text('sort'))
  const page = Math.max(1, Number.parseInt(text('page'), 10) || 1)
  return { sub: text('sub'), sid: text('sid'), text: text('q'), sort: sort ?? 'began', page }
}

function plain(status: number, text: string, headers: Response['headers'] = {}): Response {
  const policy = "default-src 'none'; frame-ancestors 'none'"
  return {
    status,
    headers: {
      'Content-Type': 'text/plain; charset=utf-8',
      'Content-Security-Policy': policy,
      ...ownHeaders,
      ...headers,
    },
    body: `${text}\n`,
  }
}
