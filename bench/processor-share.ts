// Limits how much processor time a process may use (cgroups(7)), which only root can do.
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { leavesOf } from './usage.ts'

/** Short, so that a process never waits long for its next share; in µs. */
const periodMicros = 10_000
const root = '/sys/fs/cgroup'

/**
 * Gives each process that does the work of a contender a share of a processor, from 0 to 1. Those
 * are the processes without child processes.
 * @returns how to remove the limits when the processes have ended
 * @throws {Error} when the machine does not allow it
 */
export function limitProcessors(pid: number, share: number): () => void {
  const groups = leavesOf(pid).map((leaf) => limitProcess(leaf, share))
  return () => groups.forEach((group) => rmdirSync(group))
}

function limitProcess(pid: number, share: number): string {
  const quotaMicros = Math.round(periodMicros * share)
  const isVersion2 = existsSync(join(root, 'cgroup.controllers'))
  if (isVersion2) writeFileSync(join(root, 'cgroup.subtree_control'), '+cpu')
  const group = join(root, isVersion2 ? '' : 'cpu', `gatehouse-bench-${pid}`)
  mkdirSync(group)
  if (isVersion2) writeFileSync(join(group, 'cpu.max'), `${quotaMicros} ${periodMicros}`)
  else {
    writeFileSync(join(group, 'cpu.cfs_period_us'), String(periodMicros))
    writeFileSync(join(group, 'cpu.cfs_quota_us'), String(quotaMicros))
  }
  writeFileSync(join(group, 'cgroup.procs'), String(pid))
  return group
}
