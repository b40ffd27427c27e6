import type { IncomingMessage, ServerResponse } from 'node:http'
import { isIP } from 'node:net'
import type { AdminPageConfig } from '../config/model.ts'
import { clientOf, ipAddress } from '../core/addresses.ts'
import { reason } from '../core/errors.ts'
import { isSameSecret } from '../core/same-secret.ts'
import { ownHeaders, type Response, writeResponse } from '../http/response.ts'
import { ClientBudget } from '../limits/client-budget.ts'
import { RejectedClients } from '../limits/rejected-clients.ts'
import type { Log } from '../observe/log.ts'
import { AdminPages, type Looking } from '../pages/admin-page.ts'
import { overviewOf, type Surroundings } from './overview.ts'
import { notEnded } from './sessions.ts'

const mostFormBytes = 4 * 1024
/** So many wrong tokens an address may send; then it waits, whatever it sends. */
const wrongTokens = { count: 10, perMs: 60_000 }

export interface AdminPageParts extends Surroundings {
  readonly page: AdminPageConfig
  readonly log: Log
}

/**
 * The page for administration, for whoever is let in. What keeps the sites out that an
 * administrator visits meanwhile: the page answers to names that only its own address can have (DNS
 * rebinding), shows itself to navigation and its own forms only (Fetch Metadata), and ends a
 * session only for a form that it has given out itself. @returns whether the request was for it
 */
export function createAdminPage(parts: AdminPageParts): (req: IncomingMessage, res: ServerResponse) => boolean {
  const { log } = parts
  const letIn = doorkeeper(parts)

  return (req, res) => {
    const path = (req.url ?? '').replace(/\?.*$/s, '')
    if (path !== '/' && path !== '/sessions/end') return false
    answer(req, path).then(
      (answer) => writeResponse(req, res, answer),
      (error: unknown) => {
        log.error('request.failed', { reason: reason(error), where: 'admin.page' })
        writeResponse(req, res, plain(500, 'Something went wrong: the log says what.'))
      },
    )
    return true
  }

  async function answer(req: IncomingMessage, path: '/' | '/sessions/end'): Promise<Response> {
    const refusal = refusalOf(req, path === '/' ? ['GET', 'HEAD'] : ['POST'], parts.page) ?? letIn(req)
    if (refusal !== undefined) return refusal
    const pages = new AdminPages(parts.running().pages)
    if (path === '/') return pages.overview(await overviewOf(lookingOf(req.url ?? ''), parts))
    const peer = peerOf(req)
    const order = (await readForm(req))?.get('order') ?? ''
    const ended = parts.processes.ask('end', order, peer)
    return pages.outcome(await ended.catch((error: unknown) => notEnded(reason(error))))
  }
}

/** Why a request gets no page, whoever sends it, or `undefined`. */
function refusalOf(req: IncomingMessage, methods: readonly string[], { hosts }: AdminPageConfig): Response | undefined {
  if (!isOurName(req.headers.host, hosts))
    return plain(421, 'This page is not there under this name. admin.page.hosts says under which ones it is.')
  if (!methods.includes(req.method ?? '')) return plain(405, 'Method not allowed.', { Allow: methods.join(', ') })
  if (!isAskedFromHere(req)) return plain(403, 'Another site has asked for this page: open it by itself.')
  return undefined
}

/**
 * Answers whoever is not let in. An address that guesses has to wait, and is not told whether it
 * has guessed right; others are let in.
 */
function doorkeeper({ page: { token }, log, clock }: AdminPageParts): (req: IncomingMessage) => Response | undefined {
  if (token === undefined) return () => undefined
  const wrong = new ClientBudget(wrongTokens, clock)
  const rejectedClients = new RejectedClients(log, clock)
  const askForToken = plain(401, 'The password is what admin.page.token says; the user name may be anything.', {
    'WWW-Authenticate': 'Basic realm="Gatehouse administration", charset="UTF-8"',
  })
  return (req) => {
    const given = passwordIn(req.headers.authorization)
    if (given === undefined) return askForToken
    const client = clientOf(ipAddress(peerOf(req)) ?? 'unknown')
    const waitMs = wrong.waitMs(client)
    if (waitMs > 0) {
      rejectedClients.note('admin.page.token', client, 'somebody there guesses the password of the page')
      const seconds = Math.ceil(waitMs / 1000)
      return plain(429, 'Too many wrong passwords came from this address.', { 'Retry-After': String(seconds) })
    }
    if (isSameSecret(given, token)) return undefined
    wrong.take(client)
    log.warn('admin.wrong_token', { peer: peerOf(req) })
    return askForToken
  }
}

function peerOf({ socket }: IncomingMessage): string {
  return socket.remoteAddress ?? 'unknown'
}

/**
 * A site that has its own name lead to our address is asked for by that name, and never by an IP
 * address or `localhost`.
 */
function isOurName(host: string | undefined, hosts: readonly string[]): boolean {
  if (host === undefined || !/^[\w.:[\]-]+$/.test(host) || !URL.canParse(`http://${host}`)) return false
  const { hostname } = new URL(`http://${host}`)
  return hostname === 'localhost' || isIP(hostname.replace(/^\[(.*)\]$/, '$1')) !== 0 || hosts.includes(hostname)
}

/**
 * Whoever opens the page, or presses a button on it, and no other page in their browser: Fetch
 * Metadata, or else `Origin`.
 */
function isAskedFromHere({ method, headers }: Pick<IncomingMessage, 'method' | 'headers'>): boolean {
  const site = headers['sec-fetch-site']
  if (method === 'POST') {
    if (site !== undefined) return site === 'same-origin'
    const { origin = '', host } = headers
    return URL.canParse(origin) && new URL(origin).host === host
  }
  if (site === undefined || site === 'same-origin' || site === 'none') return true
  // A link on another page may lead here: what comes is a page by itself, which that other page
  // cannot look into.
  return headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document'
}

/** RFC 7617 §2. */
function passwordIn(authorization: string | undefined): string | undefined {
  const [, credentials] = /^Basic +([\w+/=-]+)$/i.exec(authorization ?? '') ?? []
  if (credentials === undefined) return undefined
  const text = Buffer.from(credentials, 'base64').toString('utf8')
  return text.includes(':') ? text.slice(text.indexOf(':') + 1) : undefined
}

function lookingOf(url: string): Looking {
  const asked = new URL(url, 'http://localhost').searchParams
  return { sub: asked.get('sub')?.trim() ?? '', sid: asked.get('sid')?.trim() ?? '' }
}

/** `undefined`: it is no form, too long, or broke off. */
async function readForm(req: IncomingMessage): Promise<URLSearchParams | undefined> {
  if (!/^application\/x-www-form-urlencoded\b/i.test(req.headers['content-type'] ?? '')) return undefined
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of req as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (bytes > mostFormBytes) return undefined
      chunks.push(chunk)
    }
  } catch {
    // Whoever sent it has gone.
    return undefined
  }
  return new URLSearchParams(Buffer.concat(chunks).toString('utf8'))
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
