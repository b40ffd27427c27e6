import { partsOf, type PagePart } from '../../packages/admin-page/page.ts'
import type { GatewayConfig } from '../config/model/gateway.ts'
import { reason } from '../core/errors.ts'
import { pauses } from '../core/pauses.ts'
import { Repeating } from '../core/repeating.ts'
import type { ClientReply } from '../http/client-messages.ts'
import { ownHeaders, type Response } from '../http/response.ts'
import type { Log } from '../observe/log.ts'
import type { Overview, SessionQuery } from './view.ts'

/** How many streams are open at most. */
const maxStreams = 10
/**
 * The pause is this many times as long as the updates took, so that a slow store is not busy with
 * them. It is limited because a browser gives up a stream without updates.
 */
const pauseFactor = 5
const longestPauseMs = 15_000
/** After this time a page tries again to get a stream, when too many are open, in ms. */
const fullPauseMs = 10_000
/** How long a client may leave an update unread, in ms. */
const unreadTimeoutMs = 30_000
/** After this time a stream gets all parts again, in ms, because the forms in them expire. */
const renewalMs = 20 * 60 * 1000

export interface PageStreamsParts {
  readonly running: () => GatewayConfig
  readonly overview: (query: SessionQuery) => Promise<Overview>
  readonly log: Log
}

interface Stream {
  readonly res: ClientReply
  readonly query: SessionQuery
  readonly config: GatewayConfig
  /** What the client has of each part. */
  readonly sent: Map<string, string>
  renewedAt: number
  /** When the last update was written that the client has read, by `performance.now()`. */
  readAt: number
}

/**
 * Event streams with updates of the administration page (HTML §9.2). An update has the parts of the
 * page that have changed. A client that does not read gets no further update, so a stream buffers
 * one update at most.
 */
export class PageStreams {
  readonly #parts: PageStreamsParts
  readonly #streams = new Set<Stream>()
  readonly #updating = new Repeating('admin_page', () => this.#updateAll())

  constructor(parts: PageStreamsParts) {
    this.#parts = parts
  }

  /** The response with a stream. When too many are open, the stream says so and ends. */
  open(query: SessionQuery): Response {
    const config = this.#parts.running()
    return {
      status: 200,
      headers: { ...ownHeaders, 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' },
      body: '',
      stream: (res) => {
        // The script of a page cannot read another status than 200.
        if (this.#streams.size >= maxStreams)
          return void res.end(`retry: ${fullPauseMs}\nevent: full\ndata: ${maxStreams}\n\n`, 'utf8')
        const now = performance.now()
        const stream: Stream = { res, query, config, sent: new Map(), renewedAt: now, readAt: now }
        this.#streams.add(stream)
        res.once('close', () => this.#streams.delete(stream))
        res.write(Buffer.from(`retry: ${pauses.updateAdminPageMs}\n\n`))
        this.#updating.wakeIn(0)
      },
    }
  }

  /** @returns a pause while there are streams, in ms */
  async #updateAll(): Promise<number | undefined> {
    if (this.#streams.size === 0) return undefined
    const began = performance.now()
    try {
      await this.#update()
    } catch (error) {
      this.#parts.log.error('request.failed', { reason: reason(error), where: 'admin.page.events' })
      for (const { res } of this.#streams) res.end()
    }
    const took = performance.now() - began
    return Math.min(longestPauseMs, Math.max(pauses.updateAdminPageMs, pauseFactor * took))
  }

  async #update(): Promise<void> {
    // Pages with the same search share one overview.
    const byQuery = new Map<string, Stream[]>()
    for (const stream of this.#streams) {
      if (!this.#isReady(stream)) continue
      const key = JSON.stringify(stream.query)
      byQuery.set(key, [...(byQuery.get(key) ?? []), stream])
    }
    for (const streams of byQuery.values()) {
      const overview = await this.#parts.overview((streams[0] as Stream).query)
      const parts = partsOf(overview)
      for (const stream of streams) if (this.#streams.has(stream)) sendUpdate(stream, overview.at, parts)
    }
  }

  #isReady({ res, config, readAt }: Stream): boolean {
    if (config !== this.#parts.running()) {
      res.end('event: outdated\ndata:\n\n', 'utf8')
      return false
    }
    if (!res.writableNeedDrain) return true
    if (performance.now() - readAt > unreadTimeoutMs) res.destroy()
    return false
  }
}

function sendUpdate(stream: Stream, at: number, parts: readonly PagePart[]): void {
  const now = performance.now()
  if (now - stream.renewedAt > renewalMs) {
    stream.sent.clear()
    stream.renewedAt = now
  }
  const changed = parts.filter(({ id, html }) => stream.sent.get(id) !== withoutOrders(html))
  for (const { id, html } of changed) stream.sent.set(id, withoutOrders(html))
  stream.readAt = now
  // JSON escapes line ends, so the data is one line.
  stream.res.write(Buffer.from(`data: ${JSON.stringify({ at, parts: changed })}\n\n`))
}

/** A seal differs each time, so it is no change. */
function withoutOrders(html: string): string {
  return html.replaceAll(/name="order" value="[\w-]*"/g, '')
}
