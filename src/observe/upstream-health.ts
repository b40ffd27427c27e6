import type { RequestRecord, RequestSink } from './request-record.ts'

/** How requests to an upstream went, since the process began. */
export interface UpstreamHealth {
  readonly requests: number
  /** It answered with 5xx itself. */
  readonly serverErrors: number
  /** There was no answer of it, or not a whole one. */
  readonly failures: number
  readonly lastFailure: LastFailure | undefined
}

export interface LastFailure {
  /** In ms since the epoch. */
  readonly at: number
  readonly code: string
  /** The id of the request. */
  readonly request: string
}

class Counts implements UpstreamHealth {
  requests = 0
  serverErrors = 0
  failures = 0
  lastFailure: LastFailure | undefined
}

/** Remembers how requests to each upstream went. */
export class UpstreamsHealth implements RequestSink {
  readonly #byName = new Map<string, Counts>()
  readonly #now: () => number

  /** @param now ms since the epoch */
  constructor(now: () => number) {
    this.#now = now
  }

  of(upstream: string): UpstreamHealth {
    return this.#byName.get(upstream) ?? new Counts()
  }

  ended({ upstream, code, status, id }: RequestRecord): void {
    if (upstream === undefined) return
    let counts = this.#byName.get(upstream)
    if (counts === undefined) this.#byName.set(upstream, (counts = new Counts()))
    counts.requests += 1
    if (code === undefined && status >= 500) counts.serverErrors += 1
    if (code?.startsWith('ERR_UPSTREAM_') !== true) return
    counts.failures += 1
    counts.lastFailure = { at: this.#now(), code, request: id }
  }
}
