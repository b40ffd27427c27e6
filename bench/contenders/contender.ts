import type { Bed } from '../bed.ts'
import type { RunningProgram } from '../process.ts'

/** Something that stands between clients and the upstream. */
export interface Contender {
  /** As it is called on the command line. */
  readonly name: string
  /** As it is called in a report. */
  readonly title: string
  /** Whether people sign in at it: each request has to carry their identity then. */
  readonly signsIn: boolean
  /** What it can do beyond carrying plain requests. */
  readonly can: ReadonlySet<Ability>
  /** Why it cannot take part here; `undefined`: it can. */
  missing(): string | undefined
  /** Starts it; resolves when it listens. */
  start(bed: Bed, setting: Setting): Promise<Listening>
}

/** What only some contenders are set up for; workers are processes that share a port. */
export type Ability = 'tls' | 'websockets' | 'workers'

/** How a contender is started. */
export interface Setting {
  /** Its port on loopback. */
  readonly port: number
  /** The processors it may use, as taskset(1) has them. */
  readonly cpus: string
  readonly workers: number
  readonly tls: { readonly cert: string; readonly key: string } | undefined
  /** The Node.js that runs it, if it is one for Node.js. */
  readonly node: string
  /** Further options of that Node.js. */
  readonly nodeOptions: readonly string[]
}

export interface Listening extends RunningProgram {
  /**
   * Once it has stopped: how many lines it wrote since it was ready; absent: it keeps no access
   * log.
   */
  linesWritten?(): number
}
