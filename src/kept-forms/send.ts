import { reason } from '../core/errors.ts'
import type { SubTag } from '../core/names.ts'
import type { ClientMessage } from '../http/client-messages.ts'
import { type ReplacedContent, StoredContent } from '../http/request-body.ts'
import type { RequestFacts } from '../http/request-facts.ts'
import type { Audit, Cause } from '../observe/audit.ts'
import type { Log } from '../observe/log.ts'
import { withoutParameters } from '../observe/request-record.ts'
import type { Pages } from '../pages/pages.ts'
import type { PersonCookie } from '../session/cookies/gateway-cookies.ts'
import { type BrowserParts, sessionOf } from '../session/cookies/viewer.ts'
import type { StoredSession } from '../session/record/record.ts'
import { personOf } from '../session/store/store.ts'
import { asReference, type FoundRequest, type KeptRequests } from './kept-requests.ts'

/** The parts of the gateway that the endpoints and the sending of kept requests use. */
export interface KeptParts extends BrowserParts {
  readonly kept: KeptRequests
  readonly personCookie: PersonCookie
  readonly pages: Pages
  /** The path of the endpoints of the provider. */
  readonly prefix: string
  readonly log: Log
  readonly audit: Audit
}

/** The name of the only field of the form with which a person sends a kept request. */
const markName = 'gatehouse-kept-request'
/** How long the content of a send command is, in bytes. */
export const sendCommandBytes = `${markName}=12345678\r\n`.length

/** The field of the form that sends a kept request. It is sent as `text/plain`. */
export function markOf(reference: string): Readonly<Record<string, string>> {
  return { [markName]: reference }
}

/**
 * Whether a request may be a send command: the request with which a person has a kept request sent.
 * Only the content of such a request is read before the decision. The browser posts the command to
 * the URL of the kept request, because it shows the response at that URL.
 */
export function mayBeSendCommand({ headers }: Pick<ClientMessage, 'headers'>): boolean {
  return (
    headers['content-length'] === String(sendCommandBytes) &&
    /^text\/plain\b/i.test(headers['content-type'] ?? '') &&
    headers['content-encoding'] === undefined &&
    headers.expect === undefined
  )
}

/** The reference in the content of a send command; `undefined` for other content. */
export function referenceInSendCommand(content: Buffer): string | undefined {
  const [name, value, ...more] = content.toString('latin1').split('=')
  return name === markName && more.length === 0 ? asReference(value?.trimEnd()) : undefined
}

/** Returns content that was already read, so that the request is forwarded unchanged. */
export function sameContent(req: ClientMessage, content: Buffer): ReplacedContent {
  return { rawHeaders: req.rawHeaders, body: new StoredContent([content]) }
}

/**
 * Whether a field describes the content, or the page that sent it. The gateway keeps these fields.
 */
export function isContentField(name: string): boolean {
  return /^(?:content-.*|(?:repr-)?digest|transfer-encoding|trailer|referer)$/i.test(name)
}

/** The signed-in person of a browser. This does not extend the session. */
export async function personIn(
  cookieHeader: string | undefined,
  parts: BrowserParts & Pick<KeptParts, 'personCookie'>,
): Promise<{ readonly session: StoredSession; readonly tag: SubTag } | undefined> {
  const session = await sessionOf(cookieHeader, parts)
  return session && { session, tag: parts.personCookie.tagOf(session.record.sub) }
}

export interface SentRequest {
  readonly content: ReplacedContent
  readonly parts: readonly Buffer[]
  /**
   * Must be called when the exchange ends. If nothing was written, the request can be sent again.
   */
  readonly close: () => void
}

/**
 * Takes a kept request for sending, once. The signed-in person, the browser, the host and the
 * target must be those of the request.
 * @returns `undefined` when there is nothing to send; the page about the request says why
 * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`; nothing is sent. If the reply of the store was
 * lost, the request stays `sending`.
 */
export async function takeForSending(
  reference: string,
  req: ClientMessage,
  facts: RequestFacts,
  cause: Cause,
  parts: KeptParts,
): Promise<SentRequest | undefined> {
  const { kept, log, audit } = parts
  const [found, person] = [await kept.find(reference, facts.cookie), await personIn(facts.cookie, parts)]
  if (found === undefined || person === undefined || personOf(found.key) !== person.tag) return undefined
  const { request } = found
  if (request.host !== facts.host || request.target !== facts.target.path + facts.target.query) return undefined
  const content = await kept.take(found)
  if (content === undefined) return undefined

  const failed = (error: unknown) =>
    log.warn('kept_request.not_settled', { reason: reason(error), request: cause.request })
  const body = new StoredContent(content, () => {
    const { session } = person
    const { iss, sub, sid } = session.record
    const { upstream, bytes } = request
    audit.record(
      'kept_request.sent',
      { session: session.key, iss, sub, sid, upstream, path: withoutParameters(facts.target.path), bytes },
      cause,
    )
    kept.count('sent')
    // If this fails, the request stays `sending`, so it cannot be sent again.
    kept.finish(found).catch(failed)
  })
  return {
    content: { rawHeaders: fieldsFor(req.rawHeaders, found), body, kept: reference },
    parts: content,
    close: () => {
      if (!body.hasBegun) kept.giveBack(found).catch(failed)
    },
  }
}

/** The header fields of the send command, with those of the kept content. */
function fieldsFor(rawHeaders: readonly string[], { request }: FoundRequest): string[] {
  const fields: string[] = []
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const [name = '', value = ''] = rawHeaders.slice(at, at + 2)
    if (!isContentField(name)) fields.push(name, value)
  }
  return [...fields, ...request.fields, 'Content-Length', String(request.bytes)]
}
