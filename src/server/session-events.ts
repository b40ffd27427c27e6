import { clientOf } from '../core/addresses.ts'
import type { Clock } from '../core/clock.ts'
import { GatewayError, reason } from '../core/errors.ts'
import type { SessionKey } from '../core/names.ts'
import { pauses } from '../core/pauses.ts'
import { Repeating } from '../core/repeating.ts'
import type { ClientReply } from '../http/client-messages.ts'
import { type EndpointRequest, isFromThisSite } from '../http/endpoint-request.ts'
import { empty, ownHeaders, type Response } from '../http/response.ts'
import type { EventStreamLimits } from '../limits/endpoint-limits.ts'
import type { Log } from '../observe/log.ts'
import type { CutReason, LiveStream, LiveStreams } from '../proxy/live-streams.ts'
import type { BoundCookie } from '../session/cookies/gateway-cookies.ts'
import type { SessionCookie } from '../session/cookies/session-cookie.ts'
import { hasEndedBy } from '../session/live/endings.ts'
import type { SessionExpiry, SessionsOfAudience } from '../session/live/live-sessions.ts'
import { sessionKey } from '../session/record/record.ts'
import type { SessionStore } from '../session/store/store.ts'

/** After this number of checks without an event, a comment keeps the connection open at proxies. */
const checksPerHeartbeat = 3
/** The smallest change of the expiry that is sent as an event, in ms. */
const noticeableMs = 1_000
/** How long a browser waits before it connects again, in ms. */
const retryMs = 2_000

export interface SessionEventsParts {
  readonly cookie: Pick<SessionCookie, 'read'>
  readonly boundCookie: Pick<BoundCookie, 'faultOf'>
  readonly sessions: Pick<SessionsOfAudience, 'expiry'>
  readonly store: Pick<SessionStore, 'isMarked'>
  readonly live: Pick<LiveStreams, 'open'>
  readonly eventStreams: Pick<EventStreamLimits, 'begin'>
  readonly clock: Clock
  readonly log: Log
}

/**
 * `GET events`: an event stream that tells the pages of this origin when the session ends (HTML
 * §9.2). It does not count as activity. Without a session it has one event, `ended`, and the next
 * connection of the same `EventSource` gets 204, which stops it. When the person has signed in
 * again in this browser, the event is `renewed`, and the next connection has the new session.
 * @throws {GatewayError} `ERR_CROSS_SITE` for a page of another origin; `ERR_STORE_UNAVAILABLE`
 * @throws {TooManyRequests} when the session, the client, or all clients have too many streams
 */
export async function sessionEvents(request: EndpointRequest, parts: SessionEventsParts): Promise<Response> {
  if (!isFromThisSite(request)) throw new GatewayError('ERR_CROSS_SITE', 'a page of another origin asks for events')
  const id = parts.cookie.read(request.cookie)
  const key = id && sessionKey(id)
  const found = key && (await parts.sessions.expiry(key))
  // A bound session counts on its device only.
  const isOfDevice = found && parts.boundCookie.faultOf(key, found.device, request.cookie) === undefined
  const expiry = isOfDevice ? found : undefined
  // The browser may connect before it has the cookie of the new session.
  if (key !== undefined && expiry === undefined && (await hasEndedBy(key, 'renewal', parts.store)))
    return eventStream((res) => void res.end(renewed, 'utf8'))
  if (key === undefined || expiry === undefined)
    return request.lastEventId === endedId ? empty(204) : eventStream(await endOf(key, parts))
  const release = parts.eventStreams.begin(key, clientOf(request.cause.client))
  return eventStream((res) => new SessionStream(res, key, expiry, parts).start(release))
}

/** A stream with the one event `ended`. */
async function endOf(key: SessionKey | undefined, parts: SessionEventsParts) {
  const event = key === undefined ? ended() : await endedOf(key, parts)
  return (res: ClientReply) => void res.end(event, 'utf8')
}

function eventStream(stream: (res: ClientReply) => void): Response {
  // Without X-Accel-Buffering, nginx would hold events back.
  const headers = { ...ownHeaders, 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' }
  return { status: 200, headers, body: '', stream }
}

/** The ID of the last event of a stream. A browser sends it in `Last-Event-ID`. */
const endedId = 'ended'
function ended(why: { readonly reason?: 'signed_in_elsewhere' } = {}): string {
  return `retry: ${retryMs}\nid: ${endedId}\nevent: ended\ndata: ${JSON.stringify(why)}\n\n`
}

/** The last event with the reason, if it is known. */
async function endedOf(key: SessionKey, { store }: Pick<SessionEventsParts, 'store'>): Promise<string> {
  const isElsewhere = await hasEndedBy(key, 'elsewhere', store).catch(() => false)
  return ended(isElsewhere ? { reason: 'signed_in_elsewhere' } : {})
}

/** The last event when the person has a new session. The browser connects again by itself. */
const renewed = `retry: ${retryMs}\nid: session\nevent: renewed\ndata: {}\n\n`

/** The event stream of one page. */
class SessionStream implements LiveStream {
  readonly isEndless = true
  readonly #res: ClientReply
  readonly #key: SessionKey
  readonly #parts: SessionEventsParts
  #expiry: SessionExpiry
  #checks = 0
  #isOver = false
  readonly #checking = new Repeating('session_events', () => this.#check())

  constructor(res: ClientReply, key: SessionKey, expiry: SessionExpiry, parts: SessionEventsParts) {
    this.#res = res
    this.#key = key
    this.#expiry = expiry
    this.#parts = parts
  }

  /** Begins the stream. `release` is called when the stream has ended. */
  start(release: () => void): void {
    // The client may have left while the session was looked up.
    if (this.#res.destroyed) return release()
    const stopListing = this.#parts.live.open(this.#key, this)
    this.#res.once('close', () => {
      this.#isOver = true
      void this.#checking.stop()
      stopListing()
      release()
    })
    this.#write(`retry: ${retryMs}\n${this.#sessionEvent()}`)
    // The session may have ended before the stream was listed.
    this.#checking.wake()
  }

  cut(why: CutReason): void {
    if (this.#isOver) return
    this.#isOver = true
    // When the gateway stops, the browser connects again, to another replica or the next process.
    if (why === 'going_away') this.#res.end()
    else void this.#lastEvent().then((event) => this.#res.end(event, 'utf8'))
  }

  /** What the page learns when the session has ended. */
  async #lastEvent(): Promise<string> {
    if (await hasEndedBy(this.#key, 'renewal', this.#parts.store).catch(() => false)) return renewed
    return endedOf(this.#key, this.#parts)
  }

  async #check(): Promise<number | undefined> {
    try {
      const expiry = await this.#parts.sessions.expiry(this.#key)
      if (expiry === undefined) {
        this.cut('session_ended')
        return undefined
      }
      this.#tell(expiry)
    } catch (error) {
      // `LiveSessionsWatch` closes the stream if the store stays unavailable.
      this.#parts.log.debug('events.not_looked_up', { reason: reason(error) })
    }
    return this.#isOver ? undefined : pauses.checkStreamsMs
  }

  #tell(expiry: SessionExpiry): void {
    if (this.#isOver) return
    // A client that does not read gets no further events, and connects again.
    if (this.#res.writableNeedDrain) return void this.#res.destroy()
    if (Math.abs(expiry.expires_at - this.#expiry.expires_at) >= noticeableMs) {
      this.#expiry = expiry
      this.#checks = 0
      this.#write(this.#sessionEvent())
      return
    }
    this.#checks += 1
    if (this.#checks % checksPerHeartbeat === 0) this.#write(':\n\n')
  }

  #write(events: string): void {
    this.#res.write(Buffer.from(events))
  }

  #sessionEvent(): string {
    const { expires_at, absolute_expires_at, person } = this.#expiry
    const data = { now: this.#parts.clock.now(), expires_at, absolute_expires_at, person }
    return `id: session\nevent: session\ndata: ${JSON.stringify(data)}\n\n`
  }
}
