import type { UpstreamConfig } from '../config/model/upstream.ts'
import { GatewayError } from '../core/errors.ts'
import { randomId } from '../core/random.ts'
import { StoredContent } from '../http/request-body.ts'
import { hostName } from '../http/request-target.ts'
import type {
  ExchangeControl,
  Progress,
  RawFields,
  ResponseHandler,
  SwitchedConnection,
  UpstreamRequest,
} from '../transport/transport.ts'
import type { GiveBack } from '../wire/read-buffers.ts'
import type { ConnectionSlot, SlotHolder } from './connection-slots.ts'
import { addPart } from './content-parts.ts'
import { decodedContent } from './content-rewriter.ts'
import { loopField } from './passed-fields.ts'
import type { Upstream } from './upstream.ts'

/** How much unused content of a response is read, so that its connection can be used again. */
const maxDroppedBytes = 4096

/** A request that the gateway itself sends to an upstream, at its public address. */
export interface OwnRequest {
  readonly method: 'GET' | 'POST'
  /** Path and query, as clients use them. */
  readonly target: string
  readonly proto: 'http' | 'https'
  /** The public host, with its port. */
  readonly host: string
  /** The value of `Cookie`. Absent: there is no cookie. */
  readonly cookie: string | undefined
  /** See `UpstreamRequest`. */
  readonly identity: readonly string[]
  /** The person on whose behalf it is sent. */
  readonly session: string
  /** Further fields: names and values in turn. */
  readonly fields?: readonly string[]
  /** A form or JSON, whose type is one of the fields. */
  readonly content?: string | undefined
}

/** The request as the upstream gets it. */
export function ownRequest(request: OwnRequest, upstream: Upstream, config: UpstreamConfig): UpstreamRequest {
  const { method, target, proto, host, cookie, identity, session, fields = [], content } = request
  const bytes = content === undefined ? undefined : Buffer.from(content)
  const sent = [
    ...['Host', config.hostHeader === 'client' ? host : config.url.host],
    ...(cookie === undefined ? [] : ['Cookie', cookie]),
    ...['Accept', '*/*', 'User-Agent', 'Gatehouse'],
    // Many applications reject a POST that does not come from one of their pages.
    ...(method === 'POST' ? ['Origin', `${proto}://${host}`] : []),
    ...['X-Forwarded-Proto', proto, 'X-Forwarded-Host', host],
    ...['X-Request-Id', randomId(), loopField, upstream.loopMarker],
    ...fields,
    ...(bytes === undefined ? [] : ['Content-Length', String(bytes.length)]),
  ]
  const [, path = '', query = ''] = /^([^?]*)(.*)$/s.exec(target) ?? []
  return {
    method,
    path: upstream.path(path, query),
    headers: upstream.addressesAt(hostName(host)).fields.request(sent, host),
    identity,
    body: bytes && new StoredContent([bytes]),
    upgrade: undefined,
    session,
  }
}

export interface OwnResponse {
  readonly status: number
  readonly fields: RawFields
  /** Without a content coding. Empty without `maxContentBytes`. */
  readonly content: Buffer
}

interface OwnExchangeOptions {
  readonly timeoutMs: number
  /** The most content that is read, in bytes. Absent: the content is not used. */
  readonly maxContentBytes?: number
  /**
   * Whether the session has ended, on whose behalf it is sent. It may have waited for a connection.
   * Absent: it is sent after the end, too.
   */
  readonly hasEnded?: () => boolean
}

/**
 * One request of the gateway itself. It shares the connections of the upstream with the requests of
 * people, and follows no redirect. When its time is over, its connection is closed.
 */
export class OwnExchange implements ResponseHandler, SlotHolder {
  readonly #outcome = Promise.withResolvers<OwnResponse>()
  /** Resolves with the head, or with the content if it is wanted. Rejects with a `GatewayError`. */
  readonly response = this.#outcome.promise
  readonly #upstream: Upstream
  readonly #request: UpstreamRequest
  readonly #maxContentBytes: number | undefined
  readonly #hasEnded: (() => boolean) | undefined
  readonly #timer: NodeJS.Timeout
  #slot: ConnectionSlot | undefined
  #control: ExchangeControl | undefined
  #isOver = false
  /** How often it was sent, at most. */
  #sendings = 0
  #head: Omit<OwnResponse, 'content'> | undefined
  readonly #parts: Buffer[] = []
  #contentBytes = 0

  constructor(
    upstream: Upstream,
    request: UpstreamRequest,
    client: string,
    { timeoutMs, maxContentBytes, hasEnded }: OwnExchangeOptions,
  ) {
    this.#upstream = upstream
    this.#request = request
    this.#maxContentBytes = maxContentBytes
    this.#hasEnded = hasEnded
    this.#timer = setTimeout(() => this.#end(late), timeoutMs)
    if (upstream.slots.isFullFor(client)) this.#end(busy)
    else this.#slot = upstream.slots.acquire(client, this)
  }

  /** Whether the upstream may have got a part of the request. */
  get wasSent(): boolean {
    return this.#sendings > 0
  }

  onSlot(slot: ConnectionSlot): void {
    this.#slot = slot
    this.#upstream.transport.dispatch(this.#request, this)
  }

  onDone(): void {
    this.#slot?.release()
  }

  onSend(control: ExchangeControl): boolean {
    if (this.#hasEnded?.() === true) this.#end(ended)
    if (this.#isOver) return false
    this.#sendings += 1
    this.#control = control
    return true
  }

  onResponse(status: number, _message: string, fields: RawFields): void {
    if (status < 200) return
    this.#head = { status, fields }
    if (this.#maxContentBytes === undefined) this.#outcome.resolve({ ...this.#head, content: nothing })
  }

  onShortPart(part: Buffer): void {
    this.#read(part)
  }

  onContent(part: Buffer, giveBack: GiveBack): void {
    this.#read(part)
    giveBack()
  }

  onEnd(): void {
    this.#control = undefined
    const { fields = [] } = this.#head ?? {}
    const content = decodedContent(fields, Buffer.concat(this.#parts), this.#maxContentBytes ?? 0)
    if (this.#head !== undefined && content !== undefined) this.#outcome.resolve({ ...this.#head, content })
    this.#end(undecodable)
  }

  onSwitch({ socket }: SwitchedConnection): void {
    this.#control = undefined
    socket.destroy()
    this.#end(new GatewayError('ERR_UPSTREAM_RESPONSE', 'the upstream switched to another protocol'))
  }

  onError(error: GatewayError, progress?: Progress): void {
    this.#control = undefined
    if (progress === 'unsent') this.#sendings -= 1
    this.#end(error)
  }

  #read(part: Buffer): void {
    this.#contentBytes += part.length
    if (this.#contentBytes > (this.#maxContentBytes ?? maxDroppedBytes)) this.#end(tooLong)
    // The memory of the part is used again.
    else if (this.#maxContentBytes !== undefined) addPart(this.#parts, Buffer.from(part))
  }

  /** Ends the exchange. The error counts only if the response was not resolved. */
  #end(error: GatewayError): void {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#timer)
    this.#outcome.reject(error)
    this.#control?.abort(error)
    if (this.#slot?.isWaiting === true) this.#slot.release()
  }
}

const nothing = Buffer.alloc(0)
const undecodable = new GatewayError('ERR_UPSTREAM_RESPONSE', 'the content of the response cannot be decoded')
const late = new GatewayError('ERR_UPSTREAM_TIMEOUT', 'no response within the timeout of the call')
const busy = new GatewayError('ERR_UPSTREAM_BUSY', 'too many requests wait for a connection')
const ended = new GatewayError('ERR_UNAUTHENTICATED', 'the session has ended')
const tooLong = new GatewayError('ERR_UPSTREAM_RESPONSE', 'the content of the response is too long')
