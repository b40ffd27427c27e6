// The faults of a chaos run: each begins, and is healed later.
import process from 'node:process'
import type { Random } from '../test/support/random.ts'
import type { Fault, Part } from './history.ts'
import { losePageCache } from './page-cache.ts'
import { applicationOf, targets } from './parties.ts'
import type { Replica } from './replica.ts'
import { failSnapshots, nodesOfRole, type StoreNode } from './store.ts'
import type { World } from './world.ts'

/** A fault that has begun. */
export interface BegunFault {
  readonly facts: Pick<Fault, 'part' | 'replicas' | 'applications' | 'losesWrites' | 'endsSessions'>
  /** The parties that get no other fault meanwhile. */
  readonly busy: readonly string[]
  heal(): Promise<void> | void
}

export interface FaultParts {
  readonly world: World
  /** The parties that have no fault. */
  readonly isFree: (party: string) => boolean
  readonly random: Random
}

interface FaultRow {
  /** How often it happens, compared with others. */
  readonly weight: number
  /** How long until it is healed, in ms. */
  readonly lasts: readonly [number, number]
  /** Begins it. `undefined`: its target has another fault. */
  readonly begin: (parts: FaultParts) => Promise<BegunFault | undefined> | BegunFault | undefined
}

/** The largest difference of a clock, in ms; `provider.clock_tolerance` is 30 s. */
const clockMs = 5_000
const slow = { delayMs: 60, loss: 0.05 }

export const faults = {
  kill: { weight: 6, lasts: [500, 6_000], begin: (parts) => stopReplica(parts, (replica) => replica.kill()) },
  terminate: { weight: 4, lasts: [100, 3_000], begin: (parts) => stopReplica(parts, (replica) => replica.stop()) },
  power: {
    weight: 4,
    lasts: [500, 3_000],
    begin: (parts) => {
      const { file } = parts.world.store
      if (file === undefined) return undefined
      return stopReplica(parts, async (replica) => {
        await replica.kill()
        losePageCache(file)
      })
    },
  },
  upgrade: {
    weight: 3,
    lasts: [100, 1_000],
    begin: (parts) =>
      stopReplica(parts, async (replica) => {
        await replica.stop()
        replica.switchBuild()
      }),
  },
  'kill-worker': { weight: 4, lasts: [1_000, 2_000], begin: (parts) => signalWorker(parts, ['SIGKILL']) },
  'suspend-worker': { weight: 3, lasts: [500, 6_000], begin: (parts) => signalWorker(parts, ['SIGSTOP', 'SIGCONT']) },
  suspend: {
    weight: 5,
    lasts: [500, 8_000],
    begin: (parts) =>
      onReplica(parts, (replica) => {
        const pids = replica.pids()
        for (const pid of pids) signal(pid, 'SIGSTOP')
        return () => pids.forEach((pid) => signal(pid, 'SIGCONT'))
      }),
  },
  reload: {
    weight: 4,
    lasts: [100, 500],
    begin: (parts) => onReplica(parts, (replica) => () => replica.reload(), 'undisturbed'),
  },
  'session-keys': {
    weight: 2,
    lasts: [100, 500],
    begin: ({ world, isFree }) => {
      const names = world.replicas.map(({ name }) => name)
      return names.every(isFree) ? { facts: {}, busy: names, heal: () => world.rotateSessionKeys() } : undefined
    },
  },
  'keys-withdrawn': {
    weight: 1,
    lasts: [100, 500],
    begin: ({ world, isFree }) => {
      const names = world.replicas.map(({ name }) => name)
      const facts = { part: 'replica', replicas: names, endsSessions: true } as const
      return names.every(isFree) ? { facts, busy: names, heal: () => world.withdrawSessionKeys() } : undefined
    },
  },
  clock: {
    weight: 4,
    lasts: [3_000, 20_000],
    begin: (parts) =>
      onReplica(
        parts,
        (replica) => {
          replica.setClock(parts.random.between(-clockMs, clockMs))
          return () => replica.setClock(0)
        },
        'clock',
      ),
  },
  failover: {
    weight: 3,
    lasts: [3_000, 5_000],
    begin: async ({ world, random }) => {
      if (world.store.failOver === undefined) return undefined
      await world.store.failOver(random)
      return { facts: { part: 'store' }, busy: [], heal: () => {} }
    },
  },
  'kill-redis': {
    weight: 4,
    lasts: [4_000, 10_000],
    begin: (parts) =>
      onPrimary(parts, true, async ({ server }) => {
        await server.kill()
        return () => server.restart()
      }),
  },
  'suspend-redis': {
    weight: 4,
    lasts: [500, 6_000],
    begin: (parts) =>
      onPrimary(parts, false, ({ server }) => {
        server.freeze()
        return () => server.resume()
      }),
  },
  'full-disk': {
    weight: 3,
    lasts: [2_000, 6_000],
    begin: (parts) => onPrimary(parts, false, (node) => failSnapshots(node)),
  },
  'replica-redis': { weight: 8, lasts: [500, 15_000], begin: (parts) => onLink(parts, 'store') },
  'redis-redis': {
    weight: 4,
    lasts: [1_000, 8_000],
    begin: ({ world: { network, store }, random }) => {
      if (store.parties.length < 2) return undefined
      const one = random.pick(store.parties)
      const other = random.chance(0.3) ? '*' : random.pick(store.parties.filter((name) => name !== one))
      const heal = network.trouble({ between: [one, other], how: random.pick(['silence', 'reset', slow]) })
      return { facts: { part: 'store' }, busy: [], heal }
    },
  },
  'client-replica': { weight: 4, lasts: [500, 8_000], begin: onClients },
  'replica-provider': { weight: 4, lasts: [500, 8_000], begin: (parts) => onLink(parts, 'provider') },
  'replica-decision': { weight: 2, lasts: [500, 4_000], begin: (parts) => onLink(parts, 'decision') },
  'replica-application': { weight: 4, lasts: [500, 8_000], begin: (parts) => onLink(parts, 'application') },
  'provider-away': {
    weight: 3,
    lasts: [1_000, 10_000],
    begin: ({ world: { network }, random }) => ({
      facts: { part: 'provider' },
      busy: [],
      heal: network.trouble({ between: ['*', 'provider'], how: random.pick(['silence', 'reset', slow]) }),
    }),
  },
  'provider-keys': {
    weight: 2,
    lasts: [100, 500],
    begin: ({ world }) => ({ facts: { part: 'provider' }, busy: [], heal: () => world.provider.rotateKeys() }),
  },
  'application-away': {
    weight: 3,
    lasts: [1_000, 8_000],
    begin: ({ world: { network }, random }) => {
      const target = random.pick(targets)
      const heal = network.trouble({ between: ['*', target], how: random.pick(['silence', 'reset', slow]) })
      return { facts: { part: 'application', applications: [applicationOf(target)] }, busy: [], heal }
    },
  },
} as const satisfies Readonly<Record<string, FaultRow>>

export type FaultKind = keyof typeof faults

type Heal = () => Promise<void> | void

/** A replica that has no fault. */
async function onReplica(
  { world, isFree, random }: FaultParts,
  begin: (replica: Replica) => Promise<Heal> | Heal,
  part: Fault['part'] | 'undisturbed' = 'replica',
): Promise<BegunFault | undefined> {
  const replica = random.pick(world.replicas)
  if (!isFree(replica.name) || !replica.isRunning) return undefined
  const heal = await begin(replica)
  return { facts: part === 'undisturbed' ? {} : { part, replicas: [replica.name] }, busy: [replica.name], heal }
}

function stopReplica(parts: FaultParts, stop: (replica: Replica) => Promise<void>) {
  return onReplica(parts, async (replica) => {
    await stop(replica)
    return () => replica.start()
  })
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // The process has ended meanwhile.
  }
}

function signalWorker(parts: FaultParts, [first, then]: readonly [NodeJS.Signals, NodeJS.Signals?]) {
  return onReplica(parts, (replica) => {
    const [, ...workers] = replica.pids()
    const pid = parts.random.pick(workers)
    signal(pid, first)
    return () => {
      if (then !== undefined) signal(pid, then)
    }
  })
}

async function onPrimary(
  { world: { store }, isFree, random }: FaultParts,
  losesWrites: boolean,
  begin: (node: World['store']['nodes'][number]) => Promise<Heal> | Heal,
): Promise<BegunFault | undefined> {
  const node = random.pick(await nodesOfRole(store, 'master')) as StoreNode | undefined
  if (node === undefined || !isFree(node.name)) return undefined
  const heal = await begin(node)
  return { facts: { part: 'store', losesWrites }, busy: [node.name], heal }
}

/** The links of some browsers to one replica are cut or slow. */
function onClients({ world: { network, replicas }, random }: FaultParts): BegunFault {
  const { name } = random.pick(replicas)
  const how = random.pick(['silence', 'reset', slow] as const)
  const browsers = [...network.clientsOf(name)].filter((client) => client.startsWith('browser ') && random.chance(0.5))
  const heals = browsers.map((browser) => network.trouble({ between: [browser, name], how }))
  return { facts: { part: 'clients', replicas: [name] }, busy: [], heal: () => heals.forEach((heal) => heal()) }
}

type LinkedPart = Extract<Part, 'store' | 'provider' | 'application' | 'decision'>

/** The link of one replica to another party is cut or slow. */
function onLink({ world, random }: FaultParts, part: LinkedPart): BegunFault | undefined {
  const { name } = random.pick(world.replicas)
  const far = { store: world.store.parties, provider: ['provider'], application: targets, decision: ['decision'] }[part]
  if (far.length === 0) return undefined
  const how = random.pick(['silence', 'silence', 'reset', slow] as const)
  // Mostly all nodes of Redis: a replica may not need the one that is cut.
  const cut = part === 'store' && random.chance(0.75) ? far : [random.pick(far)]
  const heals = cut.map((other) => world.network.trouble({ between: [name, other], how }))
  const concerned = part === 'application' ? { applications: cut.map(applicationOf) } : {}
  return { facts: { part, replicas: [name], ...concerned }, busy: [], heal: () => heals.forEach((heal) => heal()) }
}
