// What happens in a run besides its faults: processes wait for a processor, and nodes of Redis
// change their roles.
import { readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { watchTimers } from '../test/support/late-timers.ts'
import { type HistoryEvent, now } from './history.ts'
import { rolesIn, type Store } from './store.ts'
import type { World } from './world.ts'

type Record = (event: HistoryEvent) => void

/** Between two looks at roles and processes, in ms. */
const lookEveryMs = 250
/** A shorter wait within one look is not recorded, in ms. */
const noticeableMs = 40
/**
 * After this time without a response, Redis replaces a node, in ms. What the node acknowledged
 * meanwhile is lost.
 */
const failureTimeoutMs = 3_000

/** Records until the returned function is called, which resolves when nothing more is recorded. */
export function observe({ store, replicas, touches }: World, record: Record): () => Promise<void> {
  // Browsers, proxies, provider and applications are in this process.
  const startedAt = now() - performance.now()
  const stopWatching = watchTimers(({ begin, end, ms }) =>
    record({ type: 'stall', of: 'world', begin: startedAt + begin, end: startedAt + end, ms }),
  )
  const lookAtRoles = rolesOf(store, record)
  const waits = new Waits()
  let isOver = false
  const repeat = async (look: (begin: number, end: number) => Promise<void> | void) => {
    for (let seenAt = now(); !isOver;) {
      await pause(lookEveryMs)
      const [begin, end] = [seenAt, now()]
      await look(begin, end)
      seenAt = end
    }
  }
  const looking = [
    repeat(lookAtRoles),
    repeat((begin, end) => {
      touches.settleBefore(begin)
      for (const replica of replicas) {
        const ms = Math.max(0, ...replica.pids().map((pid) => waits.since(pid)))
        if (ms > noticeableMs) record({ type: 'stall', of: replica.name, begin, end, ms })
      }
    }),
  ]
  return async () => {
    isOver = true
    stopWatching()
    await Promise.all(looking)
  }
}

/** How long the main thread of each process has waited for a processor (`/proc/PID/schedstat`). */
class Waits {
  readonly #before = new Map<number, number>()

  /** Since the last call for this process, in ms. */
  since(pid: number): number {
    const ms = waitedMs(pid)
    const before = this.#before.get(pid) ?? ms
    this.#before.set(pid, ms)
    return ms - before
  }
}

function waitedMs(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1e6
  } catch {
    // It has ended.
    return 0
  }
}

/**
 * Records when a node has another role than before, also with a time without a response between.
 */
function rolesOf(store: Store, record: Record): (begin: number) => Promise<void> {
  const known = new Map<number, string>()
  return async (begin) => {
    const roles = await rolesIn(store)
    const changed = roles.filter((role, node) => role !== undefined && role !== (known.get(node) ?? role))
    roles.forEach((role, node) => role !== undefined && known.set(node, role))
    const fault = { type: 'fault', id: 'observed', kind: 'roles', part: 'store', observed: true } as const
    if (changed.length > 0) record({ ...fault, losesWrites: true, begin: begin - failureTimeoutMs, end: now() })
  }
}
