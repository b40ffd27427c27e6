// Limits the processor time and the memory of processes with control groups of Linux, version 1
// (Documentation/scheduler/sched-bwc.rst).
import { accessSync, constants, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
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
