import type { IncomingMessage, ServerResponse } from 'node:http'
import { isIP } from 'node:net'
import type { AdminPageConfig } from '../config/model/gateway.ts'
import { clientOf, ipAddress } from '../core/addresses.ts'
import { basicCredentials } from '../core/credentials.ts'
import { reason } from '../core/errors.ts'
import { isObject } from '../core/json.ts'
import { isSameSecret } from '../core/random.ts'
import { retryAfter } from '../core/repeating.ts'
import { isFromSite } from '../http/requesting-page.ts'
import { json, ownHeaders, type Response, writeResponse } from '../http/response.ts'
import { ClientBudget } from '../limits/client-budget.ts'
import { RejectedClients } from '../limits/rejected-clients.ts'
import type { Log } from '../observe/log.ts'
import { overviewOf, recentConnections, type OverviewParts } from './overview.ts'
import { PageStreams } from './page-streams.ts'
import { AdminPages } from './page/page.ts'
import type { SessionQuery } from './page/view.ts'
import type { PersonSelection } from './selection.ts'
import { SessionCounts } from './session-counts.ts'
import { notEnded } from './sessions.ts'

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
 * @returns a handler, which returns whether the request was for the page
 */
export function createAdminPage(parts: AdminPageParts): (req: IncomingMessage, res: ServerResponse) => boolean {
  const { log } = parts
  const authenticate = createAuthentication(parts)
  const connections = recentConnections()
  const withCounts = { ...parts, counts: new SessionCounts() }
  const overview = (query: SessionQuery) => overviewOf(query, { ...withCounts, connections })
  const streams = new PageStreams({ ...parts, overview })

  return (req, res) => {
    const path = (req.url ?? '').replace(/\?.*$/s, '')
    if (!isPagePath(path)) return false
    respond(req, path).then(
      (response) => writeResponse({ req, res }, response),
      (error: unknown) => {
        log.error('request.failed', { reason: reason(error), where: 'admin.page' })
        writeResponse({ req, res }, plain(500, 'Internal error. The log has the reason.'))
      },
    )
    return true
  }

  async function respond(req: IncomingMessage, path: PagePath): Promise<Response> {
    const refusal = refusalOf(req, path, parts.page) ?? authenticate(req)
    if (refusal !== undefined) return refusal
    if (path === '/events') return streams.open(queryOf(req.url ?? ''))
    const pages = new AdminPages(parts.running().pages)
    if (path === '/') return pages.overview(await overviewOf(queryOf(req.url ?? ''), withCounts))
    const peer = peerOf(req)
    const content = await readContent(req)
    if (isJson(req)) return endPerson(content, peer, parts)
    const order = new URLSearchParams(isForm(req) ? content : '').get('order') ?? ''
    const outcome = parts.processes.call('end', order, peer)
    return pages.outcome(await outcome.catch((error: unknown) => notEnded(reason(error))))
  }
}

/** `POST /sessions/end` of a program: the content is `{ "sub" | "email" | "sid": … }`. */
async function endPerson(
  content: string | undefined,
  peer: string,
  { processes, log }: AdminPageParts,
): Promise<Response> {
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

function personIn(content: string | undefined): PersonSelection | undefined {
  let value: unknown
  try {
    value = JSON.parse(content ?? '')
  } catch {
    return undefined
  }
  const [[name, text] = ['', ''], ...more] = isObject(value) ? Object.entries(value) : []
  const isValid = more.length === 0 && typeof text === 'string' && text !== ''
  return isValid && ['sub', 'email', 'sid'].includes(name) ? { [name]: text } : undefined
}

const isJson = (req: IncomingMessage) => /^application\/json\b/i.test(req.headers['content-type'] ?? '')
const isForm = (req: IncomingMessage) =>
  /^application\/x-www-form-urlencoded\b/i.test(req.headers['content-type'] ?? '')

const methodsOf = { '/': ['GET', 'HEAD'], '/events': ['GET'], '/sessions/end': ['POST'] } as const

type PagePath = keyof typeof methodsOf

function isPagePath(path: string): path is PagePath {
  return Object.hasOwn(methodsOf, path)
}

/** The refusal of a request by its host name, method or origin, or `undefined`. */
function refusalOf(req: IncomingMessage, path: PagePath, { hosts }: AdminPageConfig): Response | undefined {
  const methods: readonly string[] = methodsOf[path]
  if (!isAllowedHost(req.headers.host, hosts))
    return plain(421, 'This page is not available under this host name. Add the name to admin.page.hosts.')
  if (!methods.includes(req.method ?? '')) return plain(405, 'Method not allowed.', { Allow: methods.join(', ') })
  if (path === '/events' ? !isOwnStream(req) : !isSameSite(req))
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
    return isFromSite(isJson(req) ? 'admin_json' : 'admin_form', { secFetchSite, origin }, [
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

function queryOf(url: string): SessionQuery {
  const params = new URL(url, 'http://localhost').searchParams
  const text = (name: string) => params.get(name)?.trim() ?? ''
  return { sub: text('sub'), sid: text('sid'), text: text('q') }
}

/** Reads the content; `undefined` when it is too long or incomplete. */
async function readContent(req: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of req as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (bytes > maxContentBytes) return undefined
      chunks.push(chunk)
    }
  } catch {
    // The client has closed the connection.
    return undefined
  }
  return Buffer.concat(chunks).toString('utf8')
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
