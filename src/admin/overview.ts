import { connect } from 'node:net'
import type { GatewayConfig } from '../config/model/gateway.ts'
import { isShared } from '../config/model/session.ts'
import type { TargetConfig } from '../config/model/upstream.ts'
import { targetName } from '../config/target-addresses.ts'
import { portOf } from '../core/addresses.ts'
import type { Clock } from '../core/clock.ts'
import { reason } from '../core/errors.ts'
import { version } from '../core/version.ts'
import { merged } from '../observe/exposition.ts'
import type { ProviderState } from '../provider/provider.ts'
import type { Processes, TargetView, UpstreamState } from './processes.ts'
import { mergedSamples } from './samples.ts'
import type { SessionCounts } from './session-counts.ts'
import { latestOf } from './timeline.ts'
import type { MergedTarget, Overview, ProviderView, SessionQuery, UpstreamView } from './view.ts'

/** How long a connection to an upstream may take, in ms. */
const connectTimeoutMs = 1_000
/** How long an update of the page repeats the result of a connection, in ms. */
const recentMs = 10_000
/** How many events the timeline of the page shows at most. */
const maxEvents = 40

export interface OverviewParts {
  readonly running: () => GatewayConfig
  readonly processes: Processes
  readonly clock: Clock
  readonly counts: SessionCounts
  /** Tries to connect to upstreams. Default: one attempt each, now. */
  readonly connections?: typeof tryConnections
}

/**
 * Everything that the administration page shows, with an error text where a part is unavailable.
 */
export async function overviewOf(query: SessionQuery, parts: OverviewParts): Promise<Overview> {
  const { running, processes, clock, counts, connections: tryAll = tryConnections } = parts
  const { externalUrl, session, providers, upstreams } = running()
  const [{ reports, silent }, sessions, connections] = await Promise.all([
    processes.states(),
    processes.call('sessions', query).catch((error: unknown) => ({ fault: reason(error) })),
    tryAll(upstreams.flatMap(({ targets }) => targets.slice(0, 1))),
  ])
  const at = clock.now()
  counts.note({ at, query, sessions })
  return {
    at,
    version,
    host: externalUrl.host,
    processes: {
      responding: reports.length,
      silent,
      countingSince: Math.min(at, ...reports.map(({ startedAt }) => startedAt)),
    },
    isShared: isShared(session.store),
    query,
    sessions,
    providers: providers.map(({ name, issuer }) => ({
      name,
      ...providerOfAll(
        issuer,
        reports.flatMap((report) => report.providers.filter((provider) => provider.name === name)),
      ),
    })),
    upstreams: upstreams.map(({ name, targets }, index) => ({
      name,
      url: targets.map(targetName).join(', '),
      connection: connections[index] ?? 'not tried',
      ...upstreamOfAll(
        name,
        reports.flatMap((report) => report.upstreams),
      ),
    })),
    timeline: latestOf(reports.map(({ timeline }) => timeline)).slice(0, maxEvents),
    samples: mergedSamples(
      reports.map(({ samples }) => samples),
      at,
    ),
    sessionCounts: counts.latest(at),
    inner: merged(reports.map(({ inner }) => inner)),
  }
}

function providerOfAll(issuer: string, states: readonly ProviderState[]): Omit<ProviderView, 'name'> {
  const found = states.filter(({ algorithm }) => algorithm !== undefined)
  const faults = states.flatMap(({ failure, keys }) => [failure, keys.failure].filter((fault) => fault !== undefined))
  const keys = new Map<string, ProviderView['keys'][number]>()
  for (const key of states.flatMap((state) => state.keys.keys)) {
    const name = JSON.stringify([key.kid, key.kty, key.alg, key.use])
    const known = keys.get(name)
    const since = Math.min(key.since, known?.since ?? Infinity)
    keys.set(name, { ...key, since, knownBy: (known?.knownBy ?? 0) + 1 })
  }
  return {
    issuer,
    algorithm: found[0]?.algorithm,
    foundBy: found.length,
    // The oldest time, because it is true of every process.
    readAt: earliest(found.map(({ readAt }) => readAt)),
    faults: [...new Set(faults)],
    keys: [...keys.values()].toSorted((a, b) => a.since - b.since),
    keysReadAt: earliest(states.map((state) => state.keys.readAt)),
  }
}

function earliest(times: readonly (number | undefined)[]): number | undefined {
  const known = times.filter((time) => time !== undefined && time !== null)
  return known.length === 0 ? undefined : Math.min(...known)
}

function upstreamOfAll(
  name: string,
  states: readonly UpstreamState[],
): Omit<UpstreamView, 'name' | 'url' | 'connection'> {
  const matching = states.filter((state) => state.name === name)
  const sum = (of: (state: UpstreamState) => number) => matching.reduce((all, each) => all + of(each), 0)
  const failures = matching.flatMap(({ lastFailure }) => lastFailure ?? [])
  return {
    requests: sum(({ requests }) => requests),
    serverErrors: sum(({ serverErrors }) => serverErrors),
    failures: sum(({ failures }) => failures),
    waiting: sum(({ waiting }) => waiting),
    targets: mergedTargets(matching.flatMap(({ targets }) => targets)),
    lastFailure: failures.toSorted((a, b) => b.at - a.at)[0],
  }
}

/** The targets of all processes, by name. */
function mergedTargets(targets: readonly TargetView[]): readonly MergedTarget[] {
  return [...Map.groupBy(targets, ({ name }) => name)].map(([name, same]) => ({
    name,
    backup: same[0]?.backup ?? false,
    open: same.reduce((sum, { open }) => sum + open, 0),
    states: [...Map.groupBy(same, ({ state }) => state)].map(([state, those]) => [state, those.length] as const),
    reasons: [...new Set(same.flatMap(({ reason }) => reason ?? []))],
  }))
}

/** How long connecting to each takes, in ms, or why it fails. */
function tryConnections(targets: readonly TargetConfig[]): Promise<readonly (number | string)[]> {
  return Promise.all(targets.map(tryConnection))
}

/** As {@link tryConnections}, but repeats a result for ten seconds. */
export function recentConnections(): typeof tryConnections {
  let recent:
    undefined | { readonly at: number; readonly names: string; readonly result: ReturnType<typeof tryConnections> }
  return (targets) => {
    const [at, names] = [performance.now(), targets.map(targetName).join()]
    if (recent?.names !== names || at - recent.at > recentMs) recent = { at, names, result: tryConnections(targets) }
    return recent.result
  }
}

/** How long connecting takes, in ms, or why it fails. Nothing is sent. */
async function tryConnection({ url, socketPath }: TargetConfig): Promise<number | string> {
  const began = performance.now()
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const socket = connect(socketPath === undefined ? { host, port: portOf(url) } : { path: socketPath })
  try {
    return await new Promise((resolve) => {
      socket.setTimeout(connectTimeoutMs, () => resolve(`no response within ${connectTimeoutMs} ms`))
      socket.once('connect', () => resolve(performance.now() - began))
      socket.once('error', (error) => resolve(reason(error)))
    })
  } finally {
    socket.on('error', () => {})
    socket.destroy()
  }
}
