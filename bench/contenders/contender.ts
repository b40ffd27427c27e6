import type { Bed } from '../bed.ts'
import type { RunningProgram } from '../process.ts'

/** A program between the clients and the upstream. */
export interface Contender {
  /** Its name on the command line. */
  readonly name: string
  /** Its name in a report. */
  readonly title: string
  /**
   * Whether people sign in at it. If so, each request to the upstream must contain their identity.
   */
  readonly signsIn: boolean
  /** The abilities that it has besides proxying plain requests. */
  readonly can: ReadonlySet<Ability>
  /** The path that accepts Logout Tokens. Absent: it accepts none. */
  readonly logoutPath?: string
  /** Why it cannot run on this machine. `undefined`: it can. */
  missing(): string | undefined
  /** The version that its program reports. */
  version(): string
  /** Its flags, its environment, and its processes or threads, as Markdown for the report. */
  runsWith(setting: Pick<Setting, 'workers' | 'cpus'>): string
  /** Starts the program. Resolves when it listens. */
  start(bed: Bed, setting: Setting): Promise<Listening>
}

/**
 * Abilities that only some contenders have. Workers are processes that share a port. Many sessions
 * are 10,000, and many sidecars 200: Apache has 400 threads, so these would need too many. HTTP/2
 * is chosen by ALPN.
 */
export type Ability = 'tls' | 'http2' | 'websockets' | 'workers' | 'many-sessions' | 'many-sidecars'

/** The settings of a contender. */
export interface Setting {
  /** The port on loopback. */
  readonly port: number
  /** The processors that it may use, in the syntax of taskset(1). */
  readonly cpus: string
  readonly workers: number
  readonly tls: { readonly cert: string; readonly key: string } | undefined
  /** The Node.js that runs it. Only for contenders that need Node.js. */
  readonly node: string
  /** Further options for Node.js. */
  readonly nodeOptions: readonly string[]
  /** A path without a sign-in. Absent: each path needs one. */
  readonly publicPath?: string
  /**
   * It keeps its own limits for clients. Absent: all clients come from one address, so they are
   * raised.
   */
  readonly usualLimits?: boolean
  /** It writes an access log into a pipe that is read at 40 KB/s. Absent: as usual. */
  readonly logsTo?: 'a slow reader'
}

export interface Listening extends RunningProgram {
  /**
   * Returns, after it has stopped, how many log lines it wrote since it was ready. Absent: it has
   * no access log.
   */
  linesWritten?(): number
}
