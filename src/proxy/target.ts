import type { UpstreamConfig } from '../config/model/upstream.ts'
import { portOf } from '../core/addresses.ts'
import type { Log } from '../observe/log.ts'
import { createTransport } from '../transport/create-transport.ts'
import type { Transport } from '../transport/transport.ts'
import { httpSchemeMismatch } from '../wire/scheme-mismatch.ts'

/** After this time a connection takes no further request, so that the host is resolved again. */
const lifetimeMs = 60_000
/** The protocol of a target is examined at most once in this time, in ms. */
const examineEveryMs = 60_000

/**
 * One address of an upstream: its transport, and whether the scheme of its URL is right.
 */
export class Target {
  readonly transport: Transport
  readonly #upstream: Pick<UpstreamConfig, 'name' | 'url'>
  /** It has sent a response with a status other than 400, so its scheme is right. */
  #hasResponded = false
  #examinedAt = -Infinity

  constructor(upstream: UpstreamConfig) {
    this.#upstream = upstream
    const { url, ca, connectTimeoutMs, keepAliveMs, maxConnections, maxStreams } = upstream
    this.transport = createTransport({
      host: hostOf(url),
      port: portOf(url),
      tls: url.protocol === 'https:' ? { ca } : undefined,
      maxConnections: maxConnections + maxStreams,
      connectTimeoutMs,
      keepAliveMs,
      lifetimeMs,
    })
  }

  /** The target has sent a response with a status other than 400. */
  noteResponse(): void {
    this.#hasResponded = true
  }

  /**
   * Logs `upstream.wrong_scheme` when the target speaks TLS and its `url` says http, or the
   * reverse. Call it after a failure that this may explain.
   * @param reason the reason of the failure
   */
  reportWrongScheme(reason: string, log: Log): void {
    const now = performance.now()
    if (this.#hasResponded || now - this.#examinedAt < examineEveryMs) return
    this.#examinedAt = now
    const { name, url } = this.#upstream
    void httpSchemeMismatch(reason, url).then((mismatch) => {
      if (mismatch === undefined) return
      log.warn('upstream.wrong_scheme', {
        upstream: name,
        url: url.origin,
        hint: `${mismatch} in upstreams.${name}.url`,
      })
    })
  }
}

/** `[::1]` → `::1` */
function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '')
}
