import type { Family } from '../observe/metrics.ts'
import type { ProviderState } from '../provider/provider.ts'
import type { EndingResult } from './administration.ts'
import type { Samples } from './samples.ts'
import type { PersonSelection } from './selection.ts'
import type { TimelineEvent } from './timeline.ts'
import type { UpstreamHealth } from './upstream-health.ts'
import type { SessionQuery, OrderOutcome, Overview } from './view.ts'

/** The state of a provider, with its name in the configuration. */
export interface NamedProviderState extends ProviderState {
  readonly name: string
}

/** The state of an upstream in one process. */
export interface UpstreamState extends UpstreamHealth {
  readonly name: string
  readonly waiting: number
  readonly targets: readonly TargetView[]
}

/** A target of an upstream. */
export interface TargetView {
  readonly name: string
  readonly backup: boolean
  /** `up`, `starting`, `ejected` or `unhealthy`. */
  readonly state: string
  /** Why it failed last. */
  readonly reason: string | undefined
  /** Its open requests and streams. */
  readonly open: number
}

/** The state of one process, as it is sent between processes. Times in ms since the epoch. */
export interface ProcessState {
  readonly startedAt: number
  readonly providers: readonly NamedProviderState[]
  readonly upstreams: readonly UpstreamState[]
  readonly timeline: readonly TimelineEvent[]
  readonly samples: Samples
  /** The metrics of caches and of background work. */
  readonly inner: readonly Family[]
}

/** Whether a process may get requests, and the reasons. */
export interface Readiness {
  readonly ready: boolean
  readonly [detail: string]: string | boolean
}

/**
 * The API of a process that serves requests. The administration listener may be another process.
 */
export interface ProcessApi {
  live(): Promise<void>
  readiness(): Promise<Readiness>
  metrics(): Promise<readonly Family[]>
  state(): Promise<ProcessState>
  sessions(query: SessionQuery): Promise<Overview['sessions']>
  /** Ends the sessions of a person, for a program at the address `client`. */
  endPerson(person: PersonSelection, client: string): Promise<EndingResult>
  /** @param order the value of a form of the administration page, sent by the address `client` */
  end(order: string, client: string): Promise<OrderOutcome>
}

export type ProcessApiMethod = keyof ProcessApi

/** The reports of all processes. `silent`: the ids of those that did not respond in time. */
export interface Reports<T> {
  readonly reports: readonly T[]
  readonly silent: readonly number[]
}

/** The processes that serve, as the administration listener sees them. */
export interface Processes {
  /** The metrics of all processes together. */
  metrics(): Promise<readonly Family[]>
  states(): Promise<Reports<ProcessState>>
  /** Calls the first process that responds. Rejects when none does. */
  call<M extends ProcessApiMethod>(method: M, ...args: Parameters<ProcessApi[M]>): ReturnType<ProcessApi[M]>
}

/** The processes of a gateway that has no workers. */
export function singleProcess(api: ProcessApi): Processes {
  return {
    metrics: () => api.metrics(),
    states: async () => ({ reports: [await api.state()], silent: [] }),
    call: (method, ...args) => callProcessApi(api, method, args),
  }
}

export function callProcessApi<M extends ProcessApiMethod>(
  api: ProcessApi,
  method: M,
  args: Parameters<ProcessApi[M]>,
): ReturnType<ProcessApi[M]> {
  return (api[method] as (...args: Parameters<ProcessApi[M]>) => ReturnType<ProcessApi[M]>)(...args)
}
