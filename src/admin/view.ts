import type { Family } from '../observe/metrics.ts'
import type { KnownKey } from '../provider/key-set.ts'
import type { SessionEntry } from './administration.ts'
import type { MergedSample } from './samples.ts'
import type { TimelineEvent } from './timeline.ts'
import type { UpstreamHealth } from './upstream-health.ts'

/**
 * The content of the administration page. Times are in ms since the epoch. The page escapes all
 * texts.
 */
export interface Overview {
  readonly at: number
  readonly version: string
  /** The host of `external_url`. */
  readonly host: string
  /** `silent`: the IDs of processes that do not respond. */
  readonly processes: {
    readonly responding: number
    readonly silent: readonly number[]
    readonly countingSince: number
  }
  /** Whether the sessions are shared with other replicas. */
  readonly isShared: boolean
  readonly query: SessionQuery
  readonly sessions: SessionsView | { readonly fault: string }
  readonly providers: readonly ProviderView[]
  readonly upstreams: readonly UpstreamView[]
  readonly timeline: readonly TimelineEvent[]
  /** Ten seconds each, the oldest first. `undefined`: there is none of that time. */
  readonly samples: readonly (MergedSample | undefined)[]
  /** How many sessions there were, for the same times. `undefined`: they were not counted. */
  readonly sessionCounts: readonly (number | undefined)[]
  /** The metrics of caches and of background work, of all processes. */
  readonly inner: readonly Family[]
}

/** What the list of sessions is sorted by. */
export const sessionColumns = ['person', 'activity', 'began'] as const
export type SessionColumn = (typeof sessionColumns)[number]

/** Which sessions to list. An empty text matches all. */
export interface SessionQuery {
  readonly sub: string
  readonly sid: string
  /** A part of anything that the list shows. */
  readonly text: string
  /** With "-" before it, in reverse order. */
  readonly sort: SessionColumn | `-${SessionColumn}`
  /** From 1. */
  readonly page: number
}

export interface SessionsView {
  /** The sessions of one page of the list. */
  readonly found: readonly SessionView[]
  readonly page: number
  readonly pages: number
  /** How many sessions all pages have. */
  readonly listed: number
  /** Whether there may be others, because reading all of them takes too long. */
  readonly isCut: boolean
  /**
   * The approximate number of sessions, also of those that do not match the text; `undefined`:
   * counting would take too long.
   */
  readonly count: number | undefined
  /** How many sessions the search has read. */
  readonly read: number
}

export interface SessionView extends SessionEntry {
  /**
   * The value that the form for ending the session sends. It is valid for this session and for a
   * limited time.
   */
  readonly order: string
}

export interface ProviderView {
  /** Its name in the configuration. */
  readonly name: string
  readonly issuer: string
  readonly algorithm: string | undefined
  /** How many processes have read the discovery document. */
  readonly foundBy: number
  readonly readAt: number | undefined
  readonly faults: readonly string[]
  /** `knownBy`: how many processes have the key. */
  readonly keys: readonly (KnownKey & { readonly knownBy: number })[]
  readonly keysReadAt: number | undefined
}

export interface UpstreamView extends UpstreamHealth {
  readonly name: string
  readonly url: string
  /** How long it took to connect, in ms, or why it failed. */
  readonly connection: number | string
  readonly waiting: number
  /** Empty: there is only one, and no health check. */
  readonly targets: readonly MergedTarget[]
}

/** A target, as all processes together see it. */
export interface MergedTarget {
  readonly name: string
  readonly backup: boolean
  /** The state, and in how many processes. */
  readonly states: readonly (readonly [state: string, processes: number])[]
  readonly reasons: readonly string[]
  readonly open: number
}

/** The result of an order to end a session. */
export interface OrderOutcome {
  readonly status: number
  readonly title: string
  readonly text: string
}
