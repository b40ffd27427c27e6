/** A measured constant of the calculator. */
export interface Figure {
  readonly value: number
  readonly unit: 'µs' | 'bytes' | 'commands' | 'times'
  readonly what: string
  /** The day of the measurement. */
  readonly measured: string
  /** The scenario of `npm run bench`, or the command. */
  readonly by: string
}

const figure = (value: number, unit: Figure['unit'], what: string, measured: string, by: string): Figure => ({
  value,
  unit,
  what,
  measured,
  by,
})

const sessionsBench = 'bench:sessions'

/** Everything that the calculator knows. docs/sizing.md has the same table. */
export const figures = {
  requestCpu: figure(39.7, 'µs', 'processor: a request', '2026-11-26', 'hot-path'),
  missCpu: figure(77, 'µs', 'processor: a request, its session read from Redis', '2026-11-26', 'misses'),
  signInCpu: figure(1400, 'µs', 'processor: a sign-in', '2026-11-26', 'sign-in'),
  logoutCpu: figure(1256, 'µs', 'processor: a Logout Token', '2026-11-25', 'logout-tokens'),
  workersCpu: figure(1.21, 'times', 'processor: a request with 2 workers, beside 1', '2026-11-26', 'workers'),
  processMemory: figure(105e6, 'bytes', 'memory: a process under load', '2026-11-26', 'hot-path'),
  sessionMemory: figure(9900, 'bytes', 'memory: a session that a process keeps', '2026-11-26', 'misses'),
  sessionsMemory: figure(154e6, 'bytes', 'memory: all sessions that a process keeps', '2026-11-26', 'misses'),
  streamMemory: figure(17_600, 'bytes', 'memory: an open WebSocket', '2026-11-22', 'websocket-memory'),
  redisSession: figure(4030, 'bytes', 'Redis: a session', '2026-11-27', sessionsBench),
  redisExpired: figure(492, 'bytes', 'Redis: a session that expired idle', '2026-11-27', sessionsBench),
  redisMissCpu: figure(67, 'µs', 'Redis, processor: a session that is read', '2026-11-20', sessionsBench),
  redisSignInCpu: figure(266, 'µs', 'Redis, processor: a sign-in', '2026-11-20', sessionsBench),
  redisLogoutCpu: figure(296, 'µs', 'Redis, processor: a Logout Token', '2026-11-25', 'logout-tokens-many'),
  redisMissCommands: figure(3, 'commands', 'Redis: a session that is read', '2026-11-27', sessionsBench),
  redisSignInCommands: figure(18.4, 'commands', 'Redis: a sign-in', '2026-11-27', sessionsBench),
  redisLogoutCommands: figure(31, 'commands', 'Redis: a Logout Token', '2026-11-27', sessionsBench),
  redisConfirmCommands: figure(2.2, 'commands', 'Redis: … for each further process', '2026-11-27', sessionsBench),
  redisMissBytes: figure(2995, 'bytes', 'Redis, network: a session that is read', '2026-11-27', sessionsBench),
  redisSignInBytes: figure(2324, 'bytes', 'Redis, network: a sign-in', '2026-11-27', sessionsBench),
  redisLogoutBytes: figure(5515, 'bytes', 'Redis, network: a Logout Token', '2026-11-27', sessionsBench),
  redisConfirmBytes: figure(940, 'bytes', 'Redis, network: … for each further process', '2026-11-27', sessionsBench),
} satisfies Readonly<Record<string, Figure>>

/** The sessions that a process keeps in memory when they are all in use. */
const keptSessions = 22_000
/** The largest that was measured. Beyond it, a result is extrapolated. */
const measured = { people: 1_000_000, processes: 4 } as const
/** The part of a processor that a process may use, so that a burst finds room. */
const room = 0.5
/** With the default of `limits.connections`, when each stream and each request has a connection. */
const streamsPerProcess = 5000
const workersPerReplica = 4

/** What the people do. Rates are for each second of the busiest time. */
export interface Demand {
  /** People with a session at the same time. */
  readonly people: number
  readonly requests: number
  readonly signIns: number
  /** Sessions that Logout Tokens of the provider end. */
  readonly logouts: number
  /** WebSockets and event streams that are open at the same time. */
  readonly streams: number
}

/** A demand with defaults for what is not given. */
export function demandOf({ people, ...given }: Pick<Demand, 'people'> & Partial<Demand>): Demand {
  return { people, requests: people / 3, signIns: people / 1800, logouts: people / 3600, streams: 0, ...given }
}

/** What a demand needs. Sizes are in bytes, rates for each second. */
export interface Size {
  /** How many processors the gateway uses, in all replicas together. */
  readonly cpus: number
  readonly workers: number
  readonly replicas: number
  readonly workerBytes: number
  readonly missShare: number
  readonly redis: {
    readonly bytes: number
    readonly cpus: number
    readonly commands: number
    readonly networkBytes: number
  }
  /** Why parts of the result are extrapolated. */
  readonly extrapolated: readonly string[]
}

/** Calculates what a demand needs, from the figures. */
export function sizeOf({ people, requests, signIns, logouts, streams }: Demand): Size {
  const of = (kind: keyof typeof figures) => figures[kind].value
  // The most that is possible: each request is of another person, and reaches any process.
  const missShare = Math.max(0, 1 - keptSessions / Math.max(people, 1))
  const misses = requests * missShare
  const other = misses * of('missCpu') + signIns * of('signInCpu') + logouts * of('logoutCpu')
  const alone = ((requests - misses) * of('requestCpu') + other) / 1e6
  const cpus = alone > room ? alone * of('workersCpu') : alone
  const processes = Math.max(1, Math.ceil(cpus / room), Math.ceil(streams / streamsPerProcess))
  const workers = Math.min(processes, workersPerReplica)
  // One replica more than needed, so that the others suffice when one is lost.
  const replicas = Math.ceil(processes / workers) + 1
  const streamsEach = streams / processes
  const sessionBytes = Math.min(people * of('sessionMemory'), of('sessionsMemory'))
  // Each process confirms each logout.
  const confirmations = logouts * (replicas * workers - 1)
  const rate = (miss: keyof typeof figures, signIn: keyof typeof figures, logout: keyof typeof figures) =>
    misses * of(miss) + signIns * of(signIn) + logouts * of(logout)
  const redisCpus = rate('redisMissCpu', 'redisSignInCpu', 'redisLogoutCpu') / 1e6
  const extrapolated = [
    people > measured.people && `at most ${count(measured.people)} sessions were measured in one Redis`,
    replicas * workers > measured.processes &&
      `at most ${measured.processes} processes were measured together, and each confirms each logout`,
    redisCpus > room && 'one Redis uses one processor, so this needs a Redis Cluster of several primaries',
  ].filter((reason) => reason !== false)
  return {
    cpus,
    workers,
    replicas,
    workerBytes: of('processMemory') + sessionBytes + streamsEach * of('streamMemory'),
    missShare,
    redis: {
      // A quarter on top, because Redis removes expired keys only when it has time for it.
      bytes: people * (of('redisSession') + of('redisExpired')) * 1.25,
      cpus: redisCpus,
      commands:
        rate('redisMissCommands', 'redisSignInCommands', 'redisLogoutCommands') +
        confirmations * of('redisConfirmCommands'),
      networkBytes:
        rate('redisMissBytes', 'redisSignInBytes', 'redisLogoutBytes') + confirmations * of('redisConfirmBytes'),
    },
    extrapolated,
  }
}

/** A number with at most three significant digits below a thousand, and commas above. */
export function count(value: number): string {
  return value.toLocaleString('en-US', value < 1000 ? { maximumSignificantDigits: 3 } : { maximumFractionDigits: 0 })
}
