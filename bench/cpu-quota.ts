// Limits the processor time and the memory of processes with control groups of Linux, version 1
// (Documentation/scheduler/sched-bwc.rst).
import { accessSync, constants, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { treePids } from './usage.ts'

const hierarchies = '/sys/fs/cgroup'
/** Short, so that a process that has used its share waits some milliseconds only. */
const periodMicros = 10_000

/** Whether this user may create groups here. */
export function canLimit(): boolean {
  try {
    accessSync(join(hierarchies, 'cpu/cpu.cfs_quota_us'), constants.W_OK)
    return true
  } catch {
    return false
  }
}

/**
 * Lets a process and each of its descendants use at most this share of a processor, each for
 * itself. Resolves to a function that removes the groups after the processes have ended.
 */
export function limitEach(root: number, share: number): () => void {
  const releases = treePids(root).map((pid) => enter([pid], `cpu/gatehouse-bench-${pid}`, quota(share)))
  return () => releases.forEach((release) => release())
}

/** Lets a process and its descendants use at most this share of a processor together. */
export function limitCpu(root: number, share: number): () => void {
  return enter(treePids(root), `cpu/gatehouse-bench-${root}`, quota(share))
}

/** Lets a process and its descendants use at most so much memory together, in MiB. */
export function limitMemory(root: number, mebibytes: number): () => void {
  const limit = { 'memory.limit_in_bytes': String(mebibytes * 2 ** 20) }
  return enter(treePids(root), `memory/gatehouse-bench-${root}`, limit)
}

/**
 * Starts what `begin` starts with at most this share of a processor and so much memory, in MiB, as
 * a container would: from the first instruction on. Returns what `begin` returned, and a function
 * that removes the groups after the processes have ended.
 */
export function beginWithin<Begun>(
  { share, mebibytes }: { readonly share: number; readonly mebibytes: number },
  begin: () => Begun,
): readonly [Begun, () => void] {
  const name = `gatehouse-bench-${process.pid}-${(containers += 1)}`
  const before = ['cpu', 'memory'].map((hierarchy) => [hierarchy, groupOf(hierarchy)] as const)
  // The period of container runtimes.
  const cpu = { 'cpu.cfs_period_us': '100000', 'cpu.cfs_quota_us': String(Math.round(share * 100_000)) }
  const memory = { 'memory.limit_in_bytes': String(mebibytes * 2 ** 20) }
  const releases = [enter([process.pid], `cpu/${name}`, cpu), enter([process.pid], `memory/${name}`, memory)]
  try {
    return [begin(), () => releases.forEach((release) => release())]
  } finally {
    for (const [hierarchy, group] of before)
      writeFileSync(join(hierarchies, hierarchy, group, 'cgroup.procs'), String(process.pid))
  }
}

/** The group of this process in a hierarchy (proc_pid_cgroup(5)). */
function groupOf(hierarchy: string): string {
  const groups = readFileSync('/proc/self/cgroup', 'utf8')
  return new RegExp(`^\\d+:${hierarchy}:(.*)$`, 'm').exec(groups)?.[1] ?? '/'
}

let containers = 0

function quota(share: number): Readonly<Record<string, string>> {
  return {
    'cpu.cfs_period_us': String(periodMicros),
    'cpu.cfs_quota_us': String(Math.round(share * periodMicros)),
  }
}

function enter(pids: readonly number[], name: string, settings: Readonly<Record<string, string>>): () => void {
  const folder = join(hierarchies, name)
  mkdirSync(folder)
  for (const [file, text] of Object.entries(settings)) writeFileSync(join(folder, file), text)
  for (const pid of pids) writeFileSync(join(folder, 'cgroup.procs'), String(pid))
  return () => rmdirSync(folder)
}
