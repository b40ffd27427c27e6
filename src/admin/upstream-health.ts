import type { RequestRecord, RequestSink } from '../observe/request-record.ts'

/** Counts of requests to an upstream since the process began. */
export interface UpstreamHealth {
  readonly requests: number
  /** Responses of the upstream with a status 5xx. */
  readonly serverErrors: number
  /** Requests without a complete response of the upstream. */
  readonly failures: number
  readonly lastFailure: LastFailure | undefined
}

export interface LastFailure {
  /** In ms since the epoch. */
  readonly at: number
  readonly code: string
  /** The ID of the request. */
  readonly request: string
}

class Counts implements UpstreamHealth {
  requests = 0
  serverErrors = 0
  failures = 0
  lastFailure: LastFailure | undefined
}

/** Counts the results of requests for each upstream. */
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
