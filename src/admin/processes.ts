import type { LogoutNotice } from '../observe/logout-notices.ts'
import type { Family } from '../observe/metrics.ts'
import type { UpstreamHealth } from '../observe/upstream-health.ts'
import type { SessionQuery, OrderOutcome, Overview } from '../pages/admin-page.ts'
import type { ProviderState } from '../provider/openid-provider.ts'

/** What one process knows. It travels between processes. Times in ms since the epoch. */
export interface ProcessState {
  readonly startedAt: number
  readonly provider: ProviderState
  readonly upstreams: readonly (UpstreamHealth & { readonly name: string; readonly waiting: number })[]
  readonly logouts: readonly LogoutNotice[]
}

/** Whether a process may get requests, and what of. */
export interface Readiness {
  readonly ready: boolean
  readonly [detail: string]: string | boolean
}

/**
 * What a process that serves is asked for whoever administers the gateway. It may be another
 * process that asks.
 */
export interface Answers {
  live(): Promise<void>
  readiness(): Promise<Readiness>
  /** What it has counted. */
  metrics(): Promise<readonly Family[]>
  state(): Promise<ProcessState>
  sessions(query: SessionQuery): Promise<Overview['sessions']>
  /** @param order what a form of the page has sent, from which address */
  end(order: string, client: string): Promise<OrderOutcome>
}

export type Question = keyof Answers

/** What all of them say. `silent`: the ids of those that do not answer in time. */
export interface Reports<T> {
  readonly reports: readonly T[]
  readonly silent: readonly number[]
}

/** The processes that serve, for whoever administers the gateway. */
export interface Processes {
  /** Of all of them. */
  metrics(): Promise<readonly Family[]>
  states(): Promise<Reports<ProcessState>>
  /** Asks one of them that answers. Rejects when none does. */
  ask<Q extends Question>(question: Q, ...given: Parameters<Answers[Q]>): ReturnType<Answers[Q]>
}

/** Where there is no other process. */
export function onlyThis(answers: Answers): Processes {
  return {
    metrics: () => answers.metrics(),
    states: async () => ({ reports: [await answers.state()], silent: [] }),
    ask: (question, ...given) => answerTo(answers, question, given),
  }
}

export function answerTo<Q extends Question>(
  answers: Answers,
  question: Q,
  given: Parameters<Answers[Q]>,
): ReturnType<Answers[Q]> {
  return (answers[question] as (...given: Parameters<Answers[Q]>) => ReturnType<Answers[Q]>)(...given)
}
