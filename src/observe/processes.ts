import { hostname } from 'node:os'

/** A process has dropped ended sessions, this many ms after the notice was sent. */
export interface Confirmation {
  readonly process: string
  readonly ms: number
}

/**
 * How the notice of an ending reached the processes that share the store. It changes when a process
 * confirms late.
 */
export interface EndingReach {
  readonly confirmed: readonly Confirmation[]
  /** How many processes received the notice and did not confirm it in time. */
  readonly missing: number
  /** Their names, if earlier confirmations show which processes they are. */
  readonly absent: readonly string[]
}

/**
 * The name of this process for operators: the host, which is the pod in Kubernetes, and the pid.
 */
export function processName(): string {
  return `${hostname().slice(0, 80)}/${process.pid}`
}
