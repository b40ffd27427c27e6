import { rootCertificates } from 'node:tls'
import type { Dispatcher } from 'undici'
import { GatewayError, reason } from '../core/errors.ts'
import { maxJsonDepth, isDeeperThan } from '../core/json-depth.ts'
import { addressOf, Agent } from '../core/undici.ts'

/** No answer of a provider is longer than this, in bytes; a longer one is refused unread. */
const maxAnswerBytes = 1024 * 1024
/**
 * The header fields of an answer that somebody reads. To copy them all would cost as much as to
 * read the content.
 */
const readFields = ['content-type', 'www-authenticate', 'date', 'age', 'location']
const utf8 = new TextDecoder()

export interface OutboundRequest {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/**
 * All traffic to the provider: bounded in time and size, never redirected (RFC 9700 §4.12: client
 * authentication must not travel on), never decompressed.
 */
export interface Outbound {
  /** @throws {GatewayError} `ERR_PROVIDER_UNAVAILABLE` when there is no answer in time */
  fetch(url: string, options: OutboundRequest): Promise<Response>
  close(): Promise<void>
}

export function createOutbound(settings: { readonly timeoutMs: number; readonly ca: string | undefined }): Outbound {
  const { timeoutMs, ca } = settings
  const agent = new Agent({
    connections: 32,
    connect: { timeout: timeoutMs, ...(ca === undefined ? {} : { ca: [...rootCertificates, ca] }) },
    // See `wholeAnswer`. undici's own limits are up to half a second too early, and begin anew with
    // each part.
    headersTimeout: 0,
    bodyTimeout: 0,
    maxResponseSize: maxAnswerBytes,
  })
  return {
    fetch: (url, options) => fetchBounded(url, options, agent, timeoutMs),
    close: () => agent.close(),
  }
}

async function fetchBounded(
  url: string,
  options: OutboundRequest,
  dispatcher: Dispatcher,
  timeoutMs: number,
): Promise<Response> {
  const { method = 'GET', headers, body = null } = options
  try {
    const request = { ...addressOf(url), method: method as Dispatcher.HttpMethod, body }
    const asked = { ...request, headers: { ...headers, 'accept-encoding': 'identity' } }
    return asResponse(url, await wholeAnswer(asked, dispatcher, timeoutMs))
  } catch (cause) {
    if (cause instanceof GatewayError) throw cause
    throw new GatewayError('ERR_PROVIDER_UNAVAILABLE', `${method} ${withoutQuery(url)}: ${reason(cause)}`, { cause })
  }
}

interface WholeAnswer {
  readonly status: number
  readonly headers: Dispatcher.ResponseData['headers']
  readonly content: Buffer
}

/** What is answered to the last byte, within the limit. */
function wholeAnswer(
  request: Dispatcher.DispatchOptions,
  dispatcher: Dispatcher,
  timeoutMs: number,
): Promise<WholeAnswer> {
  let timer: NodeJS.Timeout | undefined
  const answered = new Promise<WholeAnswer>((resolve, reject) => {
    let exchange: Dispatcher.DispatchController | undefined
    let late: Error | undefined
    timer = setTimeout(() => {
      late = new Error(`no answer within ${timeoutMs} ms`)
      exchange?.abort(late)
      reject(late)
    }, timeoutMs)
    let head: Omit<WholeAnswer, 'content'> = { status: 0, headers: {} }
    const parts: Buffer[] = []
    dispatcher.dispatch(request, {
      onRequestStart: (begun) => {
        exchange = begun
        if (late !== undefined) begun.abort(late)
      },
      onResponseStart: (_exchange, status, headers) => {
        head = { status, headers }
      },
      onResponseData: (_exchange, part) => void parts.push(part),
      onResponseEnd: () => resolve({ ...head, content: Buffer.concat(parts) }),
      onResponseError: (_exchange, error) => reject(error),
    })
  })
  return answered.finally(() => clearTimeout(timer))
}

function asResponse(url: string, { status, headers, content }: WholeAnswer): Response {
  const refuse = (why: string) => {
    throw new GatewayError('ERR_SIGN_IN_ANSWER', `${withoutQuery(url)} answered with ${why}`)
  }
  if (status < 200) refuse(`status ${status}`)
  const linesOf = (name: string) => [headers[name] ?? []].flat()
  if (linesOf('content-encoding').some((coding) => coding !== 'identity'))
    refuse('compressed content, though "identity" was asked for')
  // Claims in a JWT would have to be verified as one (OpenID Connect Core §5.3.2); we never ask for
  // that form.
  if (linesOf('content-type').some((type) => /^application\/(?:jwt|token-introspection\+jwt)\b/i.test(type)))
    refuse('a JWT where JSON was asked for')
  const lines = readFields.flatMap((name) => linesOf(name).map((line): [string, string] => [name, line]))
  const hasContent = content.length > 0 && status !== 204 && status !== 205 && status !== 304
  const response = new Response(hasContent ? content : null, { status, headers: lines })
  // It is here already: read out of a stream, JSON costs five times as much.
  const json = async (): Promise<unknown> => {
    const value: unknown = JSON.parse(utf8.decode(content))
    if (isDeeperThan(maxJsonDepth, value)) refuse(`JSON that is nested deeper than ${maxJsonDepth} levels`)
    return value
  }
  return Object.assign(response, { json })
}

/** A URL for the log: parameters may hold tokens. */
function withoutQuery(url: string): string {
  return url.replace(/[?#].*$/s, '')
}
