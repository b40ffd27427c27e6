// One run: people use the site while faults come and go, then everything is in order, and all sign
// out.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { setTimeout as pause } from 'node:timers/promises'
import { seeded } from '../test/support/random.ts'
import type { Scope } from '../test/support/redis.ts'
import { Browser } from './browser.ts'
import { startCallers } from './callers.ts'
import { type BegunFault, faults } from './faults.ts'
import { type HistoryEvent, now, writeHistory } from './history.ts'
import { observe } from './observe.ts'
import { people, timeouts } from './parties.ts'
import { type Crowd, endAsAdministrator, expireAtProvider, gather, logOutAtProvider } from './people.ts'
import type { PlannedFault } from './plan.ts'
import type { Setup } from './setup.ts'
import { lastingKeys } from './store.ts'
import { startChaosWorld, type World } from './world.ts'

export interface RunOptions {
  readonly seed: number
  readonly runMs: number
  readonly setup: Setup
  readonly plan: readonly PlannedFault[]
  /** For the history, the configurations and the logs. */
  readonly folder: string
  /** The file of another build, `main.js`. */
  readonly otherBuild: string
  /** See `WorldParts`. */
  readonly plant: string | undefined
  readonly say: (text: string) => void
}

/** How often sessions end by others than their person, in ms on average. */
const [logoutEveryMs, administratorEveryMs, expiryEveryMs] = [2_000, 4_000, 8_000]
const sampleEveryMs = 20_000
/** Before another attempt to heal a fault, in ms. */
const healAgainMs = 500
/** How many faults are active at the same time at most, also when their healing takes longer. */
const maxActive = 2
/** How long healing a fault may take, in ms. */
const healingMs = 120_000
/** People use the site for this time before the run, in ms. */
const warmUpMs = 10_000
/** Idle connections are closed after this time, in ms: logout calls need many at once. */
const idleMs = 8_000
/** Before its end, a run leaves this time to sign out and in again, in ms. */
const closingMs = 30_000
/**
 * Keys that live longer than this are counted, in ms; marks of ended sessions live for 40 minutes,
 * and the job of a logout call an hour longer than its session.
 */
const longestKeyMs = 60 * 60_000 + timeouts.absolute + 60_000

/** Runs the plan. Returns the path of the history. */
export async function runChaos(options: RunOptions): Promise<string> {
  const { folder, seed, runMs, setup, plan, otherBuild, plant, say } = options
  mkdirSync(folder, { recursive: true })
  const path = join(folder, 'history.jsonl')
  const history = writeHistory(path)
  const record = (event: HistoryEvent) => history.record(event)
  const cleanUps: (() => unknown)[] = []
  const scope: Scope = { after: (over) => void cleanUps.unshift(over) }
  let cleaning: Promise<void> | undefined
  // Once: a second signal must not end the process before everything is stopped.
  const cleanUp = () => (cleaning ??= cleanAll(cleanUps, say))
  const stop = () => void cleanUp().then(() => process.exit(130))
  const signals = ['SIGINT', 'SIGTERM'] as const
  for (const name of signals) process.on(name, stop)
  try {
    const world = await startChaosWorld(scope, { setup, folder, record, say, otherBuild, plant })
    const { site } = world
    record({
      ...{ type: 'run', at: now(), seed, replicas: setup.replicas, workers: setup.workers, persons: people },
      grace: setup.grace,
      ...{ idleTimeout: timeouts.idle, absoluteTimeout: timeouts.absolute },
      ...{ accessTokenLifetime: timeouts.accessToken, wallClock: Date.now() },
    })
    const stopObserving = observe(world, record)
    await warmUp(world, seed)
    await pause(idleMs)
    await sample(world, record, true)
    say(`${JSON.stringify(setup)}, seed ${seed}: ${plan.length} faults in ${runMs / 60_000} minutes. ${folder}`)
    const beganAt = now()
    const crowd = gather(site, people, seed, (name) => world.network.host(`browser ${name}`))
    const stopEndings = endSessions(world, seed, (order) => crowd.useCopies(order))
    const stopCallers = startCallers(world, seed)
    const sampling = setInterval(() => void sample(world, record, false), sampleEveryMs)
    await inject(options, world, record, beganAt)
    await pause(Math.max(0, beganAt + runMs - closingMs - now()))
    clearInterval(sampling)
    await stopEndings()
    await stopCallers()
    await crowd.leave()
    await Promise.all(people.map((person, n) => comeBack(world, person, seed + n)))
    await pause(idleMs)
    await stopObserving()
    await sample(world, record, true)
    record({ type: 'end', at: now() })
  } catch (error) {
    say(`  The run breaks off: ${String(error)}`)
    record({ type: 'broken', at: now(), reason: String(error) })
  } finally {
    await cleanUp()
    for (const name of signals) process.off(name, stop)
    await history.close()
  }
  return path
}

/** Takes all steps, also those that are added meanwhile, and those after one that fails. */
async function cleanAll(steps: (() => unknown)[], say: RunOptions['say']): Promise<void> {
  for (let step = steps.shift(); step !== undefined; step = steps.shift())
    try {
      await step()
    } catch (error) {
      say(`Something was not stopped: ${String(error)}`)
    }
}

/** Lets processes grow to their usual size, before the first sample. */
async function warmUp({ site, network }: World, seed: number): Promise<void> {
  const crowd = gather(site, people, seed, (name) => network.host(`browser ${name}`))
  await pause(warmUpMs)
  await crowd.leave()
}

/** Ends sessions in turn, as the provider and administrators do. Returns a function that stops. */
function endSessions(
  { site, provider, replicas, adminToken, network, store }: World,
  seed: number,
  onEnded: Crowd['useCopies'],
): () => Promise<void> {
  const parts = {
    ...{ site, provider, adminToken, random: seeded(seed + 1), onEnded },
    isCut: (name: string) => store.parties.some((party) => network.isTroubled(name, party)),
    adminOf: (name: string) => replicas.find((replica) => replica.name === name)?.adminUrl ?? '',
  }
  let isOver = false
  const repeat = async (everyMs: number, end: () => Promise<void> | void) => {
    const underWay = new Set<Promise<void>>()
    while (!isOver) {
      await pause(parts.random.between(everyMs / 2, everyMs * 1.5))
      const ending = Promise.resolve(end()).finally(() => underWay.delete(ending))
      underWay.add(ending)
    }
    await Promise.all(underWay)
  }
  const loops = [
    repeat(logoutEveryMs, () => logOutAtProvider(parts)),
    repeat(administratorEveryMs, () => endAsAdministrator(parts)),
    repeat(expiryEveryMs, () => expireAtProvider(parts)),
  ]
  return async () => {
    isOver = true
    await Promise.all(loops)
  }
}

/** Begins each fault at its time, and heals it. Resolves when all are healed. */
async function inject(
  { plan, say }: RunOptions,
  world: World,
  record: (event: HistoryEvent) => void,
  beganAt: number,
): Promise<void> {
  const active = new Set<Promise<unknown>>()
  const failures: unknown[] = []
  const busy = new Set<string>()
  const isFree = (party: string) => !busy.has(party)
  const healLater = async ({ id, kind, lasts }: PlannedFault, begin: number, begun: BegunFault) => {
    for (const party of begun.busy) busy.add(party)
    await pause(lasts)
    await untilHealed(begun, say)
    for (const party of begun.busy) busy.delete(party)
    record({ type: 'fault', id, kind, ...begun.facts, begin, end: now() })
  }
  for (const fault of plan) {
    if (failures.length > 0) break
    await pause(Math.max(0, beganAt + fault.at - now()))
    while (active.size >= maxActive) await Promise.race(active)
    const begin = now()
    const parts = { world, isFree, random: seeded(fault.seed) }
    // A node of Redis that does not respond gets no other fault.
    const begun = await Promise.resolve(faults[fault.kind].begin(parts)).catch((error: unknown) => say(String(error)))
    if (begun === undefined) {
      say(`  ${fault.id} ${fault.kind} is left out: no target is without a fault.`)
      continue
    }
    say(`  ${Math.round((begin - beganAt) / 1000)} s: ${fault.id} ${fault.kind} ${JSON.stringify(begun.facts)}`)
    const healing = healLater(fault, begin, begun)
      .catch((error: unknown) => failures.push(error))
      .finally(() => active.delete(healing))
    active.add(healing)
  }
  await Promise.all(active)
  if (failures.length > 0) throw failures[0]
}

/**
 * Heals a fault, and tries again when a node of Redis does not respond.
 * @throws the error of the last try, after two minutes
 */
async function untilHealed(begun: BegunFault, say: (text: string) => void): Promise<void> {
  const giveUpAt = now() + healingMs
  for (;;)
    try {
      return await begun.heal()
    } catch (error) {
      if (now() > giveUpAt) throw error
      say(`  not healed yet: ${String(error)}`)
      await pause(healAgainMs)
    }
}

/** A person signs in once more, uses the site and signs out, in a new browser. */
async function comeBack({ site, network }: World, person: string, seed: number): Promise<void> {
  const name = `${person}-again`
  const localAddress = network.host(`browser ${name}`)
  const browser = new Browser({ name, person, site, random: seeded(seed), localAddress })
  if ((await browser.signIn()) !== undefined) await browser.use('orders', 'page')
  await browser.signOut()
  await browser.close()
}

async function sample({ replicas, store }: World, record: (event: HistoryEvent) => void, calm: boolean): Promise<void> {
  const at = now()
  for (const replica of replicas)
    for (const usage of calm ? await replica.usageAfterCollection() : replica.usage())
      record({ type: 'sample', at, calm, replica: replica.name, ...usage })
  if (calm) record({ type: 'sample', at, calm, of: 'store', keys: await lastingKeys(store, longestKeyMs) })
}
