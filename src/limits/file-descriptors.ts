import { existsSync, readFileSync } from 'node:fs'
import type { Log } from '../observe/log.ts'

/**
 * Kept free for Redis, the provider, files, administration, and connections to upstreams that wait
 * to be used again.
 */
const reserve = 64
/** Fewer connections are of no use. */
const fewest = 10

/**
 * How many files and connections this process may have open (`ulimit -n`); Infinity when there is
 * no limit or it is unknown.
 */
function fileDescriptorLimit(): number {
  const file = '/proc/self/limits'
  const soft = existsSync(file) && /^Max open files +(\d+)/m.exec(readFileSync(file, 'latin1'))?.[1]
  return typeof soft === 'string' ? Number(soft) : Infinity
}

/**
 * How many connections clients may have open: `wanted`, or what the file descriptors are enough for
 * when each of them needs a second connection, to an upstream. At the limit of the system nothing
 * can be opened at all: everybody would get 502, and Logout Tokens be lost.
 */
export function connectionsWithin(wanted: number, log: Log, limit: number = fileDescriptorLimit()): number {
  const possible = Math.max(fewest, Math.floor((limit - reserve) / 2))
  if (possible >= wanted) return wanted
  log.warn('limits.connections_lowered', {
    'limits.connections': wanted,
    lowered_to: possible,
    open_files: limit,
    hint: 'raise the limit of open files (ulimit -n, LimitNOFILE of systemd, nofile of a container), or lower limits.connections',
  })
  return possible
}
