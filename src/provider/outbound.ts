import { rootCertificates } from 'node:tls'
import type { Dispatcher } from 'undici'
import { proxyFor } from '../config/hosts.ts'
import type { EgressProxyConfig, ProviderConfig } from '../config/model/provider.ts'
import type { Clock } from '../core/clock.ts'
import { GatewayError, reason } from '../core/errors.ts'
import { isDeeperThan, maxJsonDepth } from '../core/json.ts'
import type { Log } from '../observe/log.ts'
import type { Metrics } from '../observe/metrics.ts'
import { addressOf, Agent, createProxyAgent } from '../wire/undici.ts'

/** The longest response content, in bytes. A longer response is rejected. */
const maxResponseBytes = 1024 * 1024
/** The header fields that are read. Copying all would take as long as reading the content. */
const readFields = [
  'content-type',
  'www-authenticate',
  'dpop-nonce',
  'date',
  'age',
  'location',
  'retry-after',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'x-rate-limit-remaining',
  'x-rate-limit-reset',
  'link',
  'cache-control',
]
const utf8 = new TextDecoder()

/**
 * How many connections there are for each kind of request. What clients cause without a session
 * must not delay sign-ins and refreshes.
 */
export const connectionsFor = { introspections: 32, exchangedTokens: 32, others: 32 } as const

export interface OutboundRequest {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** A request that the server may hold back: its own time limit, and what ends it before. */
  readonly longPoll?: { readonly timeoutMs: number; readonly signal: AbortSignal }
}

/**
 * Sends all requests to the provider, limited in time and size, without compression. Redirects are
 * not followed, because they must not get the client authentication (RFC 9700 §4.12).
 */
export interface Outbound {
  /** @throws {GatewayError} `ERR_PROVIDER_UNAVAILABLE` without a response in time */
  fetch(url: string, options: OutboundRequest): Promise<Response>
  close(): Promise<void>
}

/** The parts for requests that are repeated while the gateway runs. */
export interface RequestParts {
  readonly outbound: Pick<Outbound, 'fetch'>
  readonly clock: Clock
  readonly log: Log
}

export type OutboundSettings = Pick<ProviderConfig, 'timeoutMs' | 'ca'> &
  Partial<Pick<ProviderConfig, 'clientCertificate' | 'egressProxy' | 'profile'>> & {
    /** The largest number of connections. Default: those of {@link connectionsFor} together. */
    readonly connections?: number
  }

const { introspections, exchangedTokens, others } = connectionsFor

export function createOutbound(settings: OutboundSettings): Outbound {
  const { timeoutMs, ca, clientCertificate, egressProxy, profile } = settings
  const { connections = introspections + exchangedTokens + others } = settings
  const common = {
    connections,
    // `wholeResponse` limits the time. The timers of undici fire up to half a second early, and
    // restart with each part of the content.
    headersTimeout: 0,
    bodyTimeout: 0,
    maxResponseSize: maxResponseBytes,
  }
  const connect = {
    timeout: timeoutMs,
    minVersion: 'TLSv1.2' as const,
    ...(profile !== undefined && { ciphers: fapiCiphers }),
    ...trusting(ca),
    ...clientCertificate,
  }
  const agent = new Agent({ ...common, connect })
  const proxyAgent =
    egressProxy &&
    createProxyAgent(
      {
        ...common,
        uri: egressProxy.url.href,
        ...(egressProxy.authorization === undefined ? {} : { token: egressProxy.authorization }),
        requestTls: connect,
        proxyTls: { timeout: timeoutMs, ...trusting(egressProxy.ca) },
      },
      timeoutMs,
    )
  return {
    fetch: (url, options) => {
      const proxy = egressProxy && proxyFor(new URL(url), egressProxy)
      const dispatcher = proxy === undefined ? agent : (proxyAgent ?? agent)
      const ofRequest = options.longPoll ?? { timeoutMs, signal: undefined }
      return fetchBounded(url, options, { dispatcher, proxy, ...ofRequest })
    },
    close: async () => void (await Promise.all([agent.close(), proxyAgent?.close()])),
  }
}

/** The cipher suites of RFC 9325 §4.2, and those of TLS 1.3 (FAPI 2.0 Security Profile §5.2.2). */
const fapiCiphers = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
].join(':')

/** Certificate authorities in addition to those of Node.js. */
function trusting(ca: string | undefined): { readonly ca?: string[] } {
  return ca === undefined ? {} : { ca: [...rootCertificates, ca] }
}

class ResponseTimeout extends Error {}

/** Whether `Outbound.fetch` failed because there was no response in time. */
export function isResponseTimeout(error: unknown): boolean {
  return error instanceof GatewayError && error.cause instanceof ResponseTimeout
}

interface Way {
  readonly dispatcher: Dispatcher
  readonly proxy: EgressProxyConfig | undefined
  readonly timeoutMs: number
  readonly signal: AbortSignal | undefined
}

async function fetchBounded(
  url: string,
  options: OutboundRequest,
  { dispatcher, proxy, timeoutMs, signal }: Way,
): Promise<Response> {
  const { method = 'GET', headers, body = null } = options
  try {
    const request = { ...addressOf(url), method: method as Dispatcher.HttpMethod, body }
    const sent = { ...request, headers: { ...headers, 'accept-encoding': 'identity' } }
    return asResponse(url, await wholeResponse(sent, dispatcher, { timeoutMs, signal }))
  } catch (cause) {
    if (cause instanceof GatewayError) throw cause
    const through = proxy === undefined ? '' : ` through the proxy ${proxy.url.origin}`
    const why = `${method} ${withoutQuery(url)}${through}: ${reason(cause)}`
    throw new GatewayError('ERR_PROVIDER_UNAVAILABLE', why, { cause })
  }
}

interface WholeResponse {
  readonly status: number
  readonly headers: Dispatcher.ResponseData['headers']
  readonly content: Buffer
}

function wholeResponse(
  request: Dispatcher.DispatchOptions,
  dispatcher: Dispatcher,
  { timeoutMs, signal }: Pick<Way, 'timeoutMs' | 'signal'>,
): Promise<WholeResponse> {
  let timer: NodeJS.Timeout | undefined
  let onAbort: (() => void) | undefined
  const response = new Promise<WholeResponse>((resolve, reject) => {
    let exchange: Dispatcher.DispatchController | undefined
    let end: Error | undefined
    const endWith = (error: Error) => {
      end = error
      exchange?.abort(error)
      reject(error)
    }
    timer = setTimeout(() => endWith(new ResponseTimeout(`no response within ${timeoutMs} ms`)), timeoutMs)
    onAbort = () => endWith(new Error('the request was ended'))
    signal?.addEventListener('abort', onAbort)
    if (signal?.aborted === true) return onAbort()
    let head: Omit<WholeResponse, 'content'> = { status: 0, headers: {} }
    const parts: Buffer[] = []
    dispatcher.dispatch(request, {
      onRequestStart: (begun) => {
        exchange = begun
        if (end !== undefined) begun.abort(end)
      },
      onResponseStart: (_exchange, status, headers) => {
        head = { status, headers }
      },
      onResponseData: (_exchange, part) => void parts.push(part),
      onResponseEnd: () => resolve({ ...head, content: Buffer.concat(parts) }),
      onResponseError: (_exchange, error) => reject(error),
    })
  })
  return response.finally(() => {
    clearTimeout(timer)
    if (onAbort !== undefined) signal?.removeEventListener('abort', onAbort)
  })
}

function asResponse(url: string, { status, headers, content }: WholeResponse): Response {
  const rejectResponse = (why: string) => {
    throw new GatewayError('ERR_SIGN_IN_RESPONSE', `${withoutQuery(url)} responded with ${why}`)
  }
  if (status < 200) rejectResponse(`status ${status}`)
  const valuesOf = (name: string) => [headers[name] ?? []].flat()
  if (valuesOf('content-encoding').some((coding) => coding !== 'identity'))
    rejectResponse('compressed content, although the request allowed only "identity"')
  const fields = readFields.flatMap((name) => valuesOf(name).map((value): [string, string] => [name, value]))
  // The content is in memory. Creating a stream and reading it would take several times as long.
  const response = new Response(null, { status, headers: fields })
  const text = async (): Promise<string> => utf8.decode(content)
  const json = async (): Promise<unknown> => {
    const value: unknown = JSON.parse(utf8.decode(content))
    if (isDeeperThan(maxJsonDepth, value)) rejectResponse(`JSON that is nested deeper than ${maxJsonDepth} levels`)
    return value
  }
  // Both can be called more than once, so a clone need not be another object.
  return Object.assign(response, { text, json, clone: () => response })
}

/** A URL for the log, without parameters, which may contain tokens. */
function withoutQuery(url: string): string {
  return url.replace(/[?#].*$/s, '')
}

/** The bounds of the histogram, in seconds. */
const durationBounds = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** Measures the time of requests and counts their outcomes, by the name that `endpointOf` gives. */
export function measuredOutbound(outbound: Outbound, metrics: Metrics, endpointOf: (url: string) => string): Outbound {
  const requests = metrics.counter({
    name: 'gatehouse_provider_requests_total',
    help: 'Requests to the provider, and to policy decision points (authorize_with), by endpoint. The response had 2xx or 3xx (ok), 4xx (refused), 5xx (failed), was unusable or missing (unavailable).',
    labels: ['endpoint', 'outcome'],
  })
  const durations = metrics.histogram({
    name: 'gatehouse_provider_request_duration_seconds',
    help: 'How long the provider took to respond.',
    labels: ['endpoint'],
    bounds: durationBounds,
  })
  return {
    fetch: async (url, options) => {
      const endpoint = endpointOf(url)
      const startedAt = performance.now()
      try {
        const response = await outbound.fetch(url, options)
        if (options.longPoll === undefined) durations.of(endpoint).observe((performance.now() - startedAt) / 1000)
        requests.of(endpoint, outcomeOf(response.status)).add()
        return response
      } catch (error) {
        // A long poll may end without a response.
        const isQuiet = options.longPoll !== undefined && (isResponseTimeout(error) || options.longPoll.signal.aborted)
        if (!isQuiet) requests.of(endpoint, 'unavailable').add()
        throw error
      }
    },
    close: () => outbound.close(),
  }
}

function outcomeOf(status: number): string {
  if (status < 400) return 'ok'
  return status < 500 ? 'refused' : 'failed'
}
