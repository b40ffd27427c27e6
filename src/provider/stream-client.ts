import { GatewayError } from '../core/errors.ts'
import { isObject, type JsonObject } from '../core/json.ts'
import { retryAfterMs } from '../core/repeating.ts'
import type { ApiCredentials } from './client-credentials.ts'
import { isResponseTimeout, type Outbound, type OutboundRequest } from './outbound.ts'
import { providerUnavailable } from './provider-errors.ts'
import type { Transmitter, TransmitterMetadata } from './transmitter.ts'

/** The longest `min_verification_interval`, in seconds. */
const longestInterval = 7 * 24 * 60 * 60

/** RFC 8935 and RFC 8936 as the Shared Signals Framework names them (§6.1). */
export const deliveryMethods = { push: 'urn:ietf:rfc:8935', poll: 'urn:ietf:rfc:8936' } as const

/** A stream at the transmitter (Shared Signals Framework 1.0 §8.1.1). */
export interface Stream {
  readonly stream_id: string
  readonly aud: readonly string[]
  /** `urn:ietf:rfc:8935` (push) or `urn:ietf:rfc:8936` (poll). */
  readonly method: string | undefined
  readonly endpoint_url: string | undefined
  readonly events_requested: readonly string[]
  /** Absent: the transmitter does not say it. */
  readonly events_delivered: readonly string[] | undefined
  readonly description: string | undefined
  /** In seconds; 0 when the transmitter does not say it. */
  readonly min_verification_interval: number
}

/**
 * The stream that a receiver remembers, or that with its URL or its description. One of another
 * receiver with the same client must not be changed.
 */
export function findStream(
  streams: readonly Stream[],
  own: { readonly receiverUrl: string; readonly stream_id?: string | undefined },
): Stream | undefined {
  return (
    streams.find(({ stream_id }) => stream_id === own.stream_id) ??
    streams.find(({ method, endpoint_url }) => method === deliveryMethods.push && endpoint_url === own.receiverUrl) ??
    streams.find(({ description }) => description === descriptionFor(own.receiverUrl))
  )
}

export function descriptionFor(receiverUrl: string): string {
  return `Gatehouse, ${receiverUrl}`
}

export interface WantedStream {
  readonly delivery: JsonObject
  readonly events_requested: readonly string[]
  readonly description: string
}

/** Whether a transmitter does not permit that its streams are changed. */
export function permitsNoChange(error: unknown): boolean {
  return error instanceof TransmitterRefusal && isUnsupported({ status: error.statusOfResponse })
}

/** The content of a poll request (RFC 8936 §2.2). */
export interface PollRequest {
  readonly maxEvents: number
  readonly returnImmediately: boolean
  readonly ack?: readonly string[]
  readonly setErrs?: Readonly<Record<string, { readonly err: string; readonly description: string }>>
}

/** The content of a poll response (RFC 8936 §2.3). */
export interface PollResponse {
  /** `jti` → Security Event Token. There may be more, which the next request brings. */
  readonly sets: ReadonlyMap<string, unknown>
}

/** The transmitter has responded, and not with success. */
export class TransmitterRefusal extends GatewayError {
  readonly statusOfResponse: number
  /** How long it asks to wait, in ms. */
  readonly waitMs: number | undefined

  constructor(what: string, response: Pick<Response, 'status' | 'headers'>) {
    const hint = { 401: 'check signals.authorization', 403: 'check the rights and scopes of the client' }[
      response.status
    ]
    super('ERR_PROVIDER_UNAVAILABLE', `${what}: status ${response.status}${hint === undefined ? '' : `; ${hint}`}`)
    this.statusOfResponse = response.status
    this.waitMs = retryAfterMs(response.headers.get('retry-after'), response.headers.get('date'))
  }
}

export interface StreamClientParts {
  readonly transmitter: Transmitter
  readonly credentials: ApiCredentials
  readonly outbound: Pick<Outbound, 'fetch'>
}

/**
 * Manages and polls streams. The credentials are sent to the endpoints that the metadata and the
 * streams name; redirects are not followed. All methods reject with a `GatewayError`: a {@link
 * TransmitterRefusal} when the transmitter does not permit the request.
 */
export class StreamClient {
  readonly #parts: StreamClientParts

  constructor(parts: StreamClientParts) {
    this.#parts = parts
  }

  async metadata(): Promise<TransmitterMetadata> {
    return this.#parts.transmitter.metadata()
  }

  /** The streams of this receiver (§8.1.1.2). */
  async streams(): Promise<readonly Stream[]> {
    const url = await this.#endpoint('configuration_endpoint')
    const response = await this.#send(url, {})
    // Some transmitters without a stream respond like this, although an empty list is required.
    if (response.status === 404) return []
    const found = await jsonOf(response, 'the streams could not be read', [200])
    // A transmitter with one stream for each receiver may send it without a list.
    return [found].flat().map(readStream)
  }

  /** Reads a stream (§8.1.1.2); `undefined` when the transmitter does not find it by its id. */
  async read(stream_id: string): Promise<Stream | undefined> {
    const url = new URL(await this.#endpoint('configuration_endpoint'))
    url.searchParams.set('stream_id', stream_id)
    const response = await this.#send(url.href, {})
    if ([400, 404, 405].includes(response.status)) return undefined
    const found = await jsonOf(response, 'the stream could not be read', [200])
    // Some transmitters ignore the parameter.
    return [found]
      .flat()
      .map(readStream)
      .find((stream) => stream.stream_id === stream_id)
  }

  /** Creates a stream (§8.1.1.1). */
  async create(wanted: WantedStream): Promise<Stream> {
    const url = await this.#endpoint('configuration_endpoint')
    const response = await this.#send(url, asJson('POST', wanted))
    return readStream(await jsonOf(response, 'the stream was not created', [201, 200]))
  }

  /**
   * Updates (PATCH) or replaces (PUT) a stream (§8.1.1.3, §8.1.1.4), by the other method if needed.
   * @throws {TransmitterRefusal} with the status 405 or 501 when the transmitter has neither
   */
  async change(stream_id: string, wanted: WantedStream, method: 'PATCH' | 'PUT'): Promise<Stream> {
    const url = await this.#endpoint('configuration_endpoint')
    const content = { stream_id, ...wanted }
    const first = await this.#send(url, asJson(method, content))
    const other = method === 'PATCH' ? 'PUT' : 'PATCH'
    const response = isUnsupported(first) ? await this.#send(url, asJson(other, content)) : first
    return readStream(await jsonOf(response, 'the stream was not updated', [200]))
  }

  /** `enabled`, `paused` or `disabled` (§8.1.2.1); `undefined` when the transmitter has none. */
  async status(stream_id: string): Promise<string | undefined> {
    const { status_endpoint } = await this.metadata()
    if (status_endpoint === undefined) return undefined
    const url = new URL(status_endpoint)
    url.searchParams.set('stream_id', stream_id)
    const { status } = object(await jsonOf(await this.#send(url.href, {}), 'the status was not read', [200]))
    return typeof status === 'string' ? status : undefined
  }

  /** Resumes a stream (§8.1.2.2). */
  async enable(stream_id: string): Promise<void> {
    const url = await this.#endpoint('status_endpoint')
    const response = await this.#send(url, asJson('POST', { stream_id, status: 'enabled' }))
    if (![200, 202].includes(response.status)) throw new TransmitterRefusal('the stream was not enabled', response)
  }

  /** Requests a verification event (§8.1.4.2); `false` without an endpoint, or after too many. */
  async requestVerification(stream_id: string, state: string): Promise<boolean> {
    const { verification_endpoint: url } = await this.metadata()
    if (url === undefined) return false
    const response = await this.#send(url, asJson('POST', { stream_id, state }))
    if (response.status === 429) return false
    if (![204, 200, 202].includes(response.status))
      throw new TransmitterRefusal('no verification event was requested', response)
    return true
  }

  /** Polls events (RFC 8936 §2); `undefined` without a response in `timeoutMs`: there are none. */
  async poll(
    url: string,
    content: PollRequest,
    longPoll: { readonly timeoutMs: number; readonly signal: AbortSignal },
  ): Promise<PollResponse | undefined> {
    if (!this.#parts.transmitter.isAllowed(url))
      throw providerUnavailable('the endpoint_url of the stream is not an https URL')
    this.#parts.transmitter.pollUrl = url
    try {
      const response = await this.#send(url, { ...asJson('POST', content), longPoll })
      return readPoll(await jsonOf(response, 'the events were not polled', [200]))
    } catch (error) {
      if (isResponseTimeout(error)) return undefined
      throw error
    }
  }

  async #endpoint(name: 'configuration_endpoint' | 'status_endpoint'): Promise<string> {
    const url = (await this.metadata())[name]
    if (url === undefined)
      throw providerUnavailable(
        `the transmitter has no ${name} with https: create the stream there, and set signals.stream: existing`,
      )
    return url
  }

  /** After a 401, an access token is renewed once (RFC 6750 §3.1). */
  async #send(url: string, request: OutboundRequest): Promise<Response> {
    const { credentials, outbound } = this.#parts
    const send = (authorization: string) =>
      outbound.fetch(url, { ...request, headers: { accept: 'application/json', ...request.headers, authorization } })
    const value = await credentials.value()
    const response = await send(value)
    if (response.status !== 401 || !credentials.reject(value)) return response
    return send(await credentials.value())
  }
}

/** Whether the transmitter does not have the method. */
function isUnsupported({ status }: Pick<Response, 'status'>): boolean {
  return status === 405 || status === 501
}

function asJson(method: string, content: object): OutboundRequest {
  return {
    method,
    headers: { 'content-type': 'application/json', 'content-language': 'en' },
    body: JSON.stringify(content),
  }
}

async function jsonOf(response: Response, what: string, expected: readonly number[]): Promise<unknown> {
  if (!expected.includes(response.status)) throw new TransmitterRefusal(what, response)
  try {
    return await response.json()
  } catch (error) {
    if (error instanceof GatewayError) throw error
    // The parser quotes the text, which may be part of an event.
    throw providerUnavailable(`${what}: the response is not JSON`)
  }
}

function readStream(value: unknown): Stream {
  const stream = object(value)
  const { stream_id, min_verification_interval: interval } = stream
  if (typeof stream_id !== 'string' || stream_id === '' || stream_id.length > 1_000)
    throw providerUnavailable('a stream of the transmitter has no stream_id')
  const delivery = isObject(stream['delivery']) ? stream['delivery'] : {}
  return {
    stream_id,
    aud: texts([stream['aud'] ?? []].flat()),
    // Drafts of the specification have the second names.
    method: text(delivery['method'] ?? delivery['delivery_method']),
    endpoint_url: text(delivery['endpoint_url'] ?? delivery['url']),
    events_requested: texts(stream['events_requested']),
    events_delivered: Array.isArray(stream['events_delivered']) ? texts(stream['events_delivered']) : undefined,
    description: text(stream['description']),
    // Without a bound, the stream would not be verified again after a number in ms.
    min_verification_interval: typeof interval === 'number' ? Math.min(Math.max(interval, 0), longestInterval) : 0,
  }
}

function readPoll(value: unknown): PollResponse {
  const { sets } = object(value)
  if (sets !== undefined && !isObject(sets)) throw providerUnavailable('the poll response has no object "sets"')
  return { sets: new Map(Object.entries(sets ?? {})) }
}

function object(value: unknown): JsonObject {
  if (isObject(value)) return value
  throw providerUnavailable('the transmitter did not respond with a JSON object')
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function texts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : []
}
