import { asciiDomain, durationText, isDomainOf } from '../../../src/entries/import.ts'
import type { Notes } from './notes.ts'

/** The note of a file with `store: memory`. */
export const inMemory =
  'sessions are stored in memory; a restart ends all sessions: to keep them, set session.store to a file, or to Redis for several replicas'

/** The note of a file with Redis. */
export const inRedis =
  'data in Redis is encrypted; set the environment variable SESSION_KEY to the same value for all replicas (create it with openssl rand -base64 32)'

const [shortestMs, longestMs, idleMs] = [1000, 365 * 86_400_000, 30 * 60_000]
const defaultMs = 12 * 3_600_000

/**
 * How long sessions last, and a note about it.
 * @param absoluteMs missing or out of range: 12 h
 */
export function sessionTimes(absoluteMs: number | undefined, option: string, program: string, from: Notes): object {
  const isUsable = absoluteMs !== undefined && absoluteMs >= shortestMs && absoluteMs <= longestMs
  const ms = isUsable ? Math.round(absoluteMs) : defaultMs
  const [absolute_timeout, idle_timeout] = [durationText(ms), durationText(Math.min(ms, idleMs))]
  from.changed(
    option,
    `sessions end after ${absolute_timeout} (session.absolute_timeout), and after ${idle_timeout} without requests (session.idle_timeout), which ${program} does not have`,
  )
  return { absolute_timeout, idle_timeout }
}

/** The first of these domains that `session.cookie.domain` may have: it needs https. */
export function usableDomain(domains: readonly string[], externalUrl: string): string | undefined {
  const { protocol, hostname } = new URL(externalUrl)
  if (protocol !== 'https:') return undefined
  return domains
    .map((domain) => asciiDomain(domain.replace(/^\./, '')))
    .find((domain) => domain !== undefined && isDomainOf(domain, hostname))
}
