import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Json } from './signing-provider.ts'

const ssf = 'https://schemas.openid.net/secevent/ssf/event-type/'

/** A request to the transmitter about its streams. */
export interface StreamRequest {
  readonly method: string
  /** The path without the query. */
  readonly path: string
  /** The parameter of the query. */
  readonly stream_id: string | null
  readonly authorization: string | undefined
  readonly body: Json
}

/** What a test does instead of the usual response. `pass` is the usual one. */
export type StreamFault = (req: IncomingMessage, res: ServerResponse, pass: () => void, body: Json) => void

/**
 * The streams of a transmitter (Shared Signals Framework 1.0 §8.1), and what polls take
 * (RFC 8936). It misbehaves as a test says.
 */
export class Streams {
  readonly requests: StreamRequest[] = []
  readonly all = new Map<string, Json>()
  readonly statuses = new Map<string, string>()
  /** The events that wait to be polled: `jti` → token. */
  readonly queue = new Map<string, unknown>()
  /** The `jti` of acknowledged events, in their order. */
  readonly acked: string[] = []
  readonly errors: Json = {}
  /** Which values of `Authorization` are accepted. */
  accepts: (authorization: string | undefined) => boolean = () => true
  /** Whether acknowledged events are delivered again. */
  forgetsAcks = false
  /** Whether a poll without events gets its response at once. */
  hurries = false
  /** More members of each stream, such as `aud`. */
  more: Json = {}
  /** How often a poll got its response. */
  polls = 0
  readonly #faults: { readonly path: string; readonly fault: StreamFault }[] = []
  #waiting: (() => void)[] = []
  readonly #origin: string
  readonly #sign: (payload: Json) => string

  constructor(origin: string, sign: (payload: Json) => string) {
    this.#origin = origin
    this.#sign = sign
  }

  get metadata(): Json {
    const at = (name: string) => `${this.#origin}/ssf/${name}`
    return {
      configuration_endpoint: at('stream'),
      status_endpoint: at('status'),
      verification_endpoint: at('verify'),
      delivery_methods_supported: ['urn:ietf:rfc:8935', 'urn:ietf:rfc:8936'],
    }
  }

  get pollUrl(): string {
    return `${this.#origin}/ssf/poll`
  }

  /** How many polls wait for an event. */
  get waiting(): number {
    return this.#waiting.length
  }

  /** Adds events that wait to be polled. The name of each is its `jti`, unless it is given. */
  add(token: unknown, name?: string): string {
    const jti = name ?? String((JSON.parse(partOf(String(token))) as Json)['jti'])
    this.queue.set(jti, token)
    this.release()
    return jti
  }

  /** Responds to the polls that wait. */
  release(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const respond of waiting) respond()
  }

  /**
   * Replaces the responses at a path, such as `/ssf/poll`, until the returned function is called.
   */
  fault(path: string, fault: StreamFault): () => void {
    const entry = { path, fault }
    this.#faults.unshift(entry)
    return () => void this.#faults.splice(this.#faults.indexOf(entry), 1)
  }

  sent(method: string, path: string): readonly StreamRequest[] {
    return this.requests.filter((request) => request.method === method && request.path === path)
  }

  async serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const text = (await req.setEncoding('utf8').toArray()).join('')
    const body = (text === '' ? {} : JSON.parse(text)) as Json
    const url = new URL(req.url ?? '/', this.#origin)
    const { authorization } = req.headers
    const stream_id = url.searchParams.get('stream_id')
    this.requests.push({ method: req.method ?? '', path: url.pathname, stream_id, authorization, body })
    const pass = () => {
      if (!this.accepts(authorization)) return void res.writeHead(401).end()
      this.#respond(req, res, url, body)
    }
    const found = this.#faults.find(({ path }) => path === url.pathname)
    if (found === undefined) pass()
    else found.fault(req, res, pass, body)
  }

  #respond(req: IncomingMessage, res: ServerResponse, url: URL, body: Json): void {
    const send = (status: number, value?: unknown) =>
      res
        .writeHead(status, { 'content-type': 'application/json' })
        .end(value === undefined ? undefined : JSON.stringify(value))
    const id = String(body['stream_id'] ?? url.searchParams.get('stream_id'))
    switch (`${req.method} ${url.pathname}`) {
      case 'GET /ssf/stream':
        if (!url.searchParams.has('stream_id')) return void send(200, [...this.all.values()])
        return void (this.all.has(id) ? send(200, this.all.get(id)) : send(404))
      case 'POST /ssf/stream':
        return void send(201, this.#put(`stream-${this.all.size + 1}`, body))
      case 'PATCH /ssf/stream':
      case 'PUT /ssf/stream':
        return void (this.all.has(id) ? send(200, this.#put(id, { ...this.all.get(id), ...body })) : send(404))
      case 'GET /ssf/status':
        return void send(200, { stream_id: id, status: this.statuses.get(id) ?? 'enabled' })
      case 'POST /ssf/status':
        this.statuses.set(id, String(body['status']))
        return void send(200, { stream_id: id, status: body['status'] })
      case 'POST /ssf/verify':
        send(204)
        return void this.#verify(id, body['state'])
      case 'POST /ssf/poll':
        return this.#poll(res, body)
      default:
        return void send(404)
    }
  }

  #put(stream_id: string, wanted: Json): Json {
    const { authorization_header: _, ...delivery } = wanted['delivery'] as Json
    const isPoll = delivery['method'] === 'urn:ietf:rfc:8936'
    const stream = {
      ...wanted,
      stream_id,
      ...{ delivery: isPoll ? { ...delivery, endpoint_url: this.pollUrl } : delivery },
      events_delivered: wanted['events_requested'],
      unknown: { member: [1] },
      ...this.more,
    }
    this.all.set(stream_id, stream)
    return stream
  }

  #verify(id: string, state: unknown): void {
    const stream = this.all.get(id) as Json
    const sub_id = { format: 'opaque', id }
    const token = this.#sign({ sub_id, events: { [`${ssf}verification`]: { state } } })
    const { method, endpoint_url } = stream['delivery'] as Readonly<Record<string, string>>
    if (method === 'urn:ietf:rfc:8936') return void this.add(token)
    const headers = { 'content-type': 'application/secevent+jwt' }
    // The gateway may not listen yet.
    const push = (tries: number) =>
      void fetch(endpoint_url ?? '', { method: 'POST', headers, body: token }).catch(() => {
        if (tries > 1) setTimeout(push, 20, tries - 1).unref()
      })
    push(200)
  }

  #poll(res: ServerResponse, body: Json): void {
    for (const jti of (body['ack'] ?? []) as string[]) {
      this.acked.push(jti)
      if (!this.forgetsAcks) this.queue.delete(jti)
    }
    for (const [jti, error] of Object.entries((body['setErrs'] ?? {}) as Json)) {
      Object.assign(this.errors, { [jti]: error })
      this.queue.delete(jti)
    }
    const respond = () => {
      this.polls += 1
      res.writeHead(200, { 'content-type': 'application/json' })
      res.end(JSON.stringify({ sets: Object.fromEntries(this.queue), moreAvailable: false, unknown: true }))
    }
    if (this.queue.size > 0 || this.hurries || body['returnImmediately'] === true) return respond()
    this.#waiting.push(respond)
    res.on('close', () => (this.#waiting = this.#waiting.filter((each) => each !== respond)))
  }
}

function partOf(token: string): string {
  return Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()
}
