import { rootCertificates } from 'node:tls'
import type { Dispatcher } from 'undici'
import { GatewayError, reason } from '../core/errors.ts'
import { addressOf, Agent } from '../core/undici.ts'

/** No answer of a provider is longer than this, in bytes; a longer one is refused unread. */
const maxAnswerBytes = 1024 * 1024

export interface OutboundRequest {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly signal?: AbortSignal
}

/**
 * All traffic to the provider: bounded in time and size, never redirected (RFC 9700 §4.12: client authentication must not
 * travel on), never decompressed.
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
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
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
  const limit = AbortSignal.timeout(timeoutMs)
  const signal = options.signal ? AbortSignal.any([options.signal, limit]) : limit
  try {
    const answer = await dispatcher.request({
      ...addressOf(url),
      method: (options.method ?? 'GET') as Dispatcher.HttpMethod,
      headers: { ...options.headers, 'accept-encoding': 'identity' },
      body: options.body ?? null,
      signal,
    })
    const body = await answer.body.arrayBuffer()
    return asResponse(url, answer, body)
  } catch (cause) {
    if (cause instanceof GatewayError) throw cause
    const why = limit.aborted ? `no answer within ${timeoutMs} ms` : reason(cause)
    throw new GatewayError('ERR_PROVIDER_UNAVAILABLE', `${options.method ?? 'GET'} ${withoutQuery(url)}: ${why}`, {
      cause,
    })
  }
}

function asResponse(url: string, answer: Dispatcher.ResponseData, body: ArrayBuffer): Response {
  const headers = new Headers()
  for (const [name, value] of Object.entries(answer.headers))
    for (const line of [value ?? []].flat()) headers.append(name, line)
  const refuse = (why: string) => {
    throw new GatewayError('ERR_SIGN_IN_ANSWER', `${withoutQuery(url)} answered with ${why}`)
  }
  if (answer.statusCode < 200) refuse(`status ${answer.statusCode}`)
  if ((headers.get('content-encoding') ?? 'identity') !== 'identity')
    refuse('compressed content, though "identity" was asked for')
  // Claims in a JWT would have to be verified as one (OpenID Connect Core §5.3.2); we never ask for that form.
  if (/^application\/(?:jwt|token-introspection\+jwt)\b/i.test(headers.get('content-type') ?? ''))
    refuse('a JWT where JSON was asked for')
  const hasBody =
    body.byteLength > 0 && answer.statusCode !== 204 && answer.statusCode !== 205 && answer.statusCode !== 304
  return new Response(hasBody ? body : null, { status: answer.statusCode, headers })
}

/** A URL for the log: parameters may hold tokens. */
function withoutQuery(url: string): string {
  return url.replace(/[?#].*$/s, '')
}
