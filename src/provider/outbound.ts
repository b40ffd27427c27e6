import { rootCertificates } from 'node:tls'
import type { Dispatcher } from 'undici'
import { GatewayError, reason } from '../core/errors.ts'
import { maxJsonDepth, isDeeperThan } from '../core/json-depth.ts'
import { addressOf, Agent } from '../core/undici.ts'

/** The longest response content, in bytes. A longer response is rejected. */
const maxResponseBytes = 1024 * 1024
/**
 * The header fields that are read. Copying all fields would take as long as reading the content.
 */
const readFields = ['content-type', 'www-authenticate', 'date', 'age', 'location']
const utf8 = new TextDecoder()

export interface OutboundRequest {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/**
 * Sends all requests to the provider. Time and size are limited. Redirects are not followed,
 * because client authentication must not be passed on (RFC 9700 §4.12). Responses are not
 * compressed.
 */
export interface Outbound {
  /** @throws {GatewayError} `ERR_PROVIDER_UNAVAILABLE` without a response in time */
  fetch(url: string, options: OutboundRequest): Promise<Response>
  close(): Promise<void>
}

export function createOutbound(settings: { readonly timeoutMs: number; readonly ca: string | undefined }): Outbound {
  const { timeoutMs, ca } = settings
  const agent = new Agent({
    connections: 32,
    connect: { timeout: timeoutMs, ...(ca === undefined ? {} : { ca: [...rootCertificates, ca] }) },
    // `wholeResponse` limits the time. The timers of undici fire up to half a second early, and
    // restart with each part of the content.
    headersTimeout: 0,
    bodyTimeout: 0,
    maxResponseSize: maxResponseBytes,
  })
  return {
    fetch: (url, options) => fetchBounded(url, options, agent, timeoutMs),
    close: () => agent.close(),
  }
}

class ResponseTimeout extends Error {}

/** Whether `Outbound.fetch` failed because there was no response in time. */
export function isResponseTimeout(error: unknown): boolean {
  return error instanceof GatewayError && error.cause instanceof ResponseTimeout
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
    const sent = { ...request, headers: { ...headers, 'accept-encoding': 'identity' } }
    return asResponse(url, await wholeResponse(sent, dispatcher, timeoutMs))
  } catch (cause) {
    if (cause instanceof GatewayError) throw cause
    throw new GatewayError('ERR_PROVIDER_UNAVAILABLE', `${method} ${withoutQuery(url)}: ${reason(cause)}`, { cause })
  }
}

interface WholeResponse {
  readonly status: number
  readonly headers: Dispatcher.ResponseData['headers']
  readonly content: Buffer
}

/** The complete response, within the time limit. */
function wholeResponse(
  request: Dispatcher.DispatchOptions,
  dispatcher: Dispatcher,
  timeoutMs: number,
): Promise<WholeResponse> {
  let timer: NodeJS.Timeout | undefined
  const response = new Promise<WholeResponse>((resolve, reject) => {
    let exchange: Dispatcher.DispatchController | undefined
    let late: Error | undefined
    timer = setTimeout(() => {
      late = new ResponseTimeout(`no response within ${timeoutMs} ms`)
      exchange?.abort(late)
      reject(late)
    }, timeoutMs)
    let head: Omit<WholeResponse, 'content'> = { status: 0, headers: {} }
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
  return response.finally(() => clearTimeout(timer))
}

function asResponse(url: string, { status, headers, content }: WholeResponse): Response {
  const rejectResponse = (why: string) => {
    throw new GatewayError('ERR_SIGN_IN_RESPONSE', `${withoutQuery(url)} responded with ${why}`)
  }
  if (status < 200) rejectResponse(`status ${status}`)
  const valuesOf = (name: string) => [headers[name] ?? []].flat()
  if (valuesOf('content-encoding').some((coding) => coding !== 'identity'))
    rejectResponse('compressed content, although the request allowed only "identity"')
  // Claims in a JWT would have to be verified (OpenID Connect Core §5.3.2). The gateway never
  // requests this form.
  if (valuesOf('content-type').some((type) => /^application\/(?:jwt|token-introspection\+jwt)\b/i.test(type)))
    rejectResponse('a JWT instead of JSON')
  const fields = readFields.flatMap((name) => valuesOf(name).map((value): [string, string] => [name, value]))
  const hasContent = content.length > 0 && status !== 204 && status !== 205 && status !== 304
  const response = new Response(hasContent ? content : null, { status, headers: fields })
  // The content is in memory. Reading JSON from a stream takes five times as long.
  const json = async (): Promise<unknown> => {
    const value: unknown = JSON.parse(utf8.decode(content))
    if (isDeeperThan(maxJsonDepth, value)) rejectResponse(`JSON that is nested deeper than ${maxJsonDepth} levels`)
    return value
  }
  return Object.assign(response, { json })
}

/** A URL for the log, without parameters, which may contain tokens. */
function withoutQuery(url: string): string {
  return url.replace(/[?#].*$/s, '')
}
