import { administer } from '../admin/administration.ts'
import type { ProcessApi, ProcessState, Readiness } from '../admin/processes.ts'
import { type AdminSessionsParts, endByOrder, findSessions } from '../admin/sessions.ts'
import type { Clock } from '../core/clock.ts'
import { reason } from '../core/errors.ts'
import { randomId } from '../core/random.ts'
import { innerMetrics } from '../observe/process-metrics.ts'
import type { SessionStore } from '../session/store/store.ts'
import type { Generations } from './generations.ts'
import type { Observing } from './observing.ts'

export interface ProcessApiParts {
  readonly generations: Generations
  readonly observing: Observing
  readonly store: SessionStore
  readonly clock: Clock
  /** When the process started, in ms since the epoch. */
  readonly startedAt: number
}

/** Creates the API of this process for the administration listener. */
export function createProcessApi(parts: ProcessApiParts): ProcessApi {
  const { generations, observing, store, clock } = parts
  const sessions: AdminSessionsParts = {
    running: () => generations.config,
    administration: () =>
      administer({
        ...generations.current.parts,
        config: generations.config,
        providerOf: (audience) =>
          generations.current.parts.realms.all.find((realm) => realm.audience === audience)?.provider,
      }),
    clock,
  }
  return {
    live: async () => {},
    readiness: () => readiness(store, generations),
    metrics: async () => {
      // Updates the metrics of the store, which may be available again since its last use.
      await store.ping().catch(() => {})
      return observing.metrics.collect()
    },
    state: async () => processState(parts),
    sessions: (query) => findSessions(query, sessions),
    endPerson: (person, client) => sessions.administration().end(person, { request: randomId(), client }),
    end: (order, client) => endByOrder(order, client, sessions),
  }
}

async function readiness(store: SessionStore, generations: Generations): Promise<Readiness> {
  const { sessions, realms } = generations.current.parts
  const storeState = await store.ping().then(
    () => 'responds',
    (error: unknown) => reason(error),
  )
  // The process is ready during the grace, because a process that is not ready gets no requests.
  const grace = storeState !== 'responds' && sessions.mayServeInOutage
  const draining = generations.isClosing
  return {
    ready: (storeState === 'responds' || grace) && !draining,
    store: storeState,
    ...(grace && { grace }),
    provider: realms.isKnown ? 'found' : 'not found yet',
    draining,
  }
}

function processState({ startedAt, generations, observing }: ProcessApiParts): ProcessState {
  const { realms, upstreams } = generations.current.parts
  const { pageHistory } = observing
  if (pageHistory === undefined) throw new Error('admin.page is not configured')
  const [loads, targets] = [new Map(upstreams.loads()), new Map(upstreams.targets())]
  return {
    startedAt,
    providers: realms.all.map(({ config, provider }) => ({ name: config.name, ...provider.state })),
    upstreams: generations.config.upstreams.map(({ name }) => ({
      ...pageHistory.upstreams.of(name),
      name,
      waiting: loads.get(name)?.waiting ?? 0,
      targets: targets.get(name) ?? [],
    })),
    timeline: pageHistory.timeline.latest,
    samples: pageHistory.samples.current,
    inner: Object.values(innerMetrics).flatMap((name) => observing.metrics.read(name) ?? []),
  }
}
