import { existsSync, readFileSync } from 'node:fs'
import type { LimitsConfig } from '../config/model/gateway.ts'
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
 * How many connections clients may have open: `connections`, or fewer if the file descriptors do
 * not suffice. Each connection may need a second one to an upstream. Without a free file
 * descriptor, the gateway could open no connection: all requests would get 502, and Logout Tokens
 * would be lost.
 */
export function connectionsWithin(
  { connections, areConnectionsSet }: Pick<LimitsConfig, 'connections' | 'areConnectionsSet'>,
  log: Log,
  limit: number = fileDescriptorLimit(),
): number {
  const possible = Math.max(minConnections, Math.floor((limit - reserve) / 2))
  if (possible >= connections) return connections
  const raise = 'raise the limit of open files (ulimit -n, LimitNOFILE of systemd, nofile of a container)'
  const fields = { lowered_to: possible, open_files: limit }
  if (areConnectionsSet)
    log.warn('limits.connections_lowered', {
      'limits.connections': connections,
      ...fields,
      hint: `To have limits.connections, ${raise}. Or lower limits.connections.`,
    })
  else
    log.info('limits.connections_lowered', {
      ...fields,
      hint: `Clients may open ${possible} connections, because this process may open ${limit} files. To allow more, ${raise}.`,
    })
  return possible
}
