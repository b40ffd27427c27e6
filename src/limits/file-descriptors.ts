import { existsSync, readFileSync } from 'node:fs'
import type { Log } from '../observe/log.ts'

/**
 * File descriptors for Redis, the provider, files, administration, and idle connections to
 * upstreams.
 */
const reserve = 64
/** The lowest limit. Fewer connections are not useful. */
const minConnections = 10

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
 * How many connections clients may have open: `wanted`, or fewer if the file descriptors do not
 * suffice. Each connection may need a second one to an upstream. Without a free file descriptor,
 * the gateway could open no connection: all requests would get 502, and Logout Tokens would be
 * lost.
 */
export function connectionsWithin(wanted: number, log: Log, limit: number = fileDescriptorLimit()): number {
  const possible = Math.max(minConnections, Math.floor((limit - reserve) / 2))
  if (possible >= wanted) return wanted
  log.warn('limits.connections_lowered', {
    'limits.connections': wanted,
    lowered_to: possible,
    open_files: limit,
    hint: 'Raise the limit of open files (ulimit -n, LimitNOFILE of systemd, nofile of a container), or lower limits.connections.',
  })
  return possible
}
