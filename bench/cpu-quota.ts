// Limits the processor time of processes with control groups of Linux, version 1
// (Documentation/scheduler/sched-bwc.rst).
import { accessSync, constants, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { treePids } from './usage.ts'

const hierarchy = '/sys/fs/cgroup/cpu'
/** Short, so that a process that has used its share waits some milliseconds only. */
const periodMicros = 10_000

/** Whether this user may create groups here. */
export function canLimit(): boolean {
  try {
    accessSync(join(hierarchy, 'cpu.cfs_quota_us'), constants.W_OK)
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
  const folders = treePids(root).map((pid) => {
    const folder = join(hierarchy, `gatehouse-bench-${pid}`)
    mkdirSync(folder)
    writeFileSync(join(folder, 'cpu.cfs_period_us'), String(periodMicros))
    writeFileSync(join(folder, 'cpu.cfs_quota_us'), String(Math.round(share * periodMicros)))
    writeFileSync(join(folder, 'cgroup.procs'), String(pid))
    return folder
  })
  return () => folders.forEach((folder) => rmdirSync(folder))
}
