import { readdirSync } from 'node:fs'
import { caches } from '../core/bounded-map.ts'
import { backgroundWork } from '../core/repeating.ts'
import { EventLoopDelay } from './event-loop-delay.ts'
import type { Metrics } from './metrics.ts'

/**
 * Adds metrics of this process, with the names of Prometheus client libraries where they exist.
 * Returns a function that stops the measurement.
 */
export function addProcessMetrics(metrics: Metrics, version: string): () => void {
  const delay = new EventLoopDelay()
  metrics.gauge({
    name: 'gatehouse_event_loop_delay_seconds',
    help: 'How late timers fired since the last scrape: the time that a request waits for the processor. With several workers, the largest value.',
    labels: ['quantile'],
    merge: 'max',
    read: () => delay.take().map(([quantile, seconds]) => [[quantile], seconds]),
  })
  metrics.counted({
    name: 'process_cpu_seconds_total',
    help: 'Processor time, user and system.',
    read: () => {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1e6
    },
  })
  metrics.gauge({
    name: 'process_resident_memory_bytes',
    help: 'Resident memory.',
    merge: 'sum',
    read: () => process.memoryUsage.rss(),
  })
  metrics.gauge({
    name: 'nodejs_heap_used_bytes',
    help: 'The used part of the JavaScript heap.',
    merge: 'sum',
    read: () => process.memoryUsage().heapUsed,
  })
  const startedAt = Math.round(Date.now() / 1000 - process.uptime())
  metrics.gauge({
    name: 'process_start_time_seconds',
    help: 'Start time of the process, since the epoch. With several workers, the earliest.',
    merge: 'min',
    read: () => startedAt,
  })
  metrics.gauge({ name: 'process_open_fds', help: 'Open file descriptors.', merge: 'sum', read: openFileDescriptors })
  metrics.gauge({ name: 'gatehouse_workers', help: 'Number of worker processes.', merge: 'sum', read: () => 1 })
  metrics.gauge({
    name: 'gatehouse_build_info',
    help: 'The version of Gatehouse and of Node.js.',
    labels: ['version', 'node'],
    merge: 'max',
    read: () => [[[version, process.versions.node], 1]],
  })
  addInnerMetrics(metrics)
  return () => delay.stop()
}

/** The metrics of caches and of background work, which the administration page shows too. */
export const innerMetrics = {
  entries: 'gatehouse_cache_entries',
  used: 'gatehouse_cache_used_ratio',
  evicted: 'gatehouse_cache_evictions_total',
  runs: 'gatehouse_background_runs_total',
  running: 'gatehouse_background_running_seconds',
} as const

function addInnerMetrics(metrics: Metrics): void {
  const { entries, used, evicted, runs, running } = innerMetrics
  const [cache, work] = [['cache'], ['work']]
  const sum = (one: number, other: number) => one + other
  metrics.gauge({
    name: entries,
    help: 'Entries of a cache.',
    labels: cache,
    merge: 'sum',
    read: () => caches.values(({ size }) => size, sum),
  })
  metrics.gauge({
    name: used,
    help: 'The used share of a cache, from 0 to 1.',
    labels: cache,
    merge: 'max',
    read: () => caches.values((each) => each.used, Math.max),
  })
  metrics.counted({
    name: evicted,
    help: 'Entries that a cache has dropped because others needed their place.',
    labels: cache,
    read: () => caches.counts,
  })
  metrics.counted({ name: runs, help: 'Runs of background work.', labels: work, read: () => backgroundWork.counts })
  metrics.gauge({
    name: running,
    help: 'How long the current run of background work has taken; 0 while nothing runs.',
    labels: work,
    merge: 'max',
    read: () => backgroundWork.values(({ runningMs }) => runningMs / 1000, Math.max),
  })
}

/** Empty on operating systems without /proc. */
function openFileDescriptors(): readonly (readonly [readonly string[], number])[] {
  try {
    return [[[], readdirSync('/proc/self/fd').length]]
  } catch {
    return []
  }
}
