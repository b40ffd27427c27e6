// The processor time and memory of processes, read from /proc.
import { readFileSync, readdirSync } from 'node:fs'

/** The clock of /proc has 100 ticks a second on common Linux systems. */
const microsPerTick = 10_000

interface Stat {
  readonly parent: number
  /**
   * The processor time of the process, and of its child processes that have ended and were waited
   * for.
   */
  readonly ticks: number
}

/** A process and all its descendants. */
export function treePids(root: number): number[] {
  const childrenOf = new Map<number, number[]>()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const parent = statOf(Number(name))?.parent
    if (parent !== undefined) childrenOf.set(parent, [...(childrenOf.get(parent) ?? []), Number(name)])
  }
  const tree = [root]
  for (const pid of tree) tree.push(...(childrenOf.get(pid) ?? []))
  return tree
}

function statOf(pid: number): Stat | undefined {
  const stat = textOf(`/proc/${pid}/stat`)
  if (stat === undefined) return undefined
  // The fields follow the name, which may contain any character (proc(5)).
  const fields = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
  const [, parent = 0] = fields
  const [utime = 0, stime = 0, cutime = 0, cstime = 0] = fields.slice(11, 15)
  return { parent, ticks: utime + stime + cutime + cstime }
}

/** The processor time of a process, its threads and all its descendants, in µs. */
export function cpuMicros(root: number): number {
  return treePids(root).reduce((sum, pid) => sum + (statOf(pid)?.ticks ?? 0), 0) * microsPerTick
}

/**
 * The processor time of one process and its current threads, with a finer resolution than a tick
 * (Documentation/scheduler/sched-stats.rst).
 */
export function exactMicros(pid: number): number {
  const nanos = readdirSync(`/proc/${pid}/task`).map((thread) =>
    Number(textOf(`/proc/${pid}/task/${thread}/schedstat`)?.split(' ')[0] ?? 0),
  )
  return nanos.reduce((sum, n) => sum + n, 0) / 1000
}

/** The same of a process and all its descendants. Threads that have ended do not count. */
export function exactTreeMicros(root: number): number {
  return treePids(root).reduce((sum, pid) => sum + exactMicros(pid), 0)
}

/** The processor time of each process separately, by pid. */
export function cpuByProcess(root: number): Map<number, number> {
  return new Map(treePids(root).map((pid) => [pid, (statOf(pid)?.ticks ?? 0) * microsPerTick]))
}

/**
 * The resident memory of a process and all its descendants, in bytes. Shared memory counts for each
 * of them.
 */
export function memoryBytes(root: number): number {
  return treePids(root).reduce((sum, pid) => {
    const kib = /^VmRSS:\s+(\d+)/m.exec(textOf(`/proc/${pid}/status`) ?? '')?.[1]
    return sum + Number(kib ?? 0) * 1024
  }, 0)
}

/**
 * The proportional set of a process and all its descendants, in bytes: memory that several
 * processes share counts in equal parts.
 */
export function proportionalBytes(root: number): number {
  return sumOfMaps(root, 'Pss')
}

/** The memory that only these processes have: what is not a part of a file. In bytes. */
export function ownBytes(root: number): number {
  return sumOfMaps(root, 'Anonymous')
}

function sumOfMaps(root: number, field: string): number {
  return treePids(root).reduce((sum, pid) => {
    const kib = new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(textOf(`/proc/${pid}/smaps_rollup`) ?? '')?.[1]
    return sum + Number(kib ?? 0) * 1024
  }, 0)
}

/** How often the current threads of a process and of its descendants began to wait. */
export function waits(root: number): number {
  const counts = treePids(root).flatMap((pid) =>
    readdirSync(`/proc/${pid}/task`).map((thread) => {
      const status = textOf(`/proc/${pid}/task/${thread}/status`) ?? ''
      return Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(status)?.[1] ?? 0)
    }),
  )
  return counts.reduce((sum, count) => sum + count, 0)
}

/** The time in which a processor was busy, in µs. Time that the hypervisor took counts as busy. */
export function busyMicros(cpu: number): number {
  const line = new RegExp(`^cpu${cpu} (.*)$`, 'm').exec(textOf('/proc/stat') ?? '')?.[1] ?? ''
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = line.split(' ').map(Number)
  return (user + nice + system + irq + softirq + steal) * microsPerTick
}

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    // The process ended after it was listed.
    return undefined
  }
}
