// Who takes part in a chaos run, and the times of sessions.

import type { Part } from './history.ts'

export const replicaNames = ['a', 'b', 'c', 'd'] as const
export const applications = ['orders', 'files', 'live', 'api'] as const
/** Where each application runs: several targets are alike. */
export const targets = [...applications, 'live-2'] as const

/** The application of a target. */
export function applicationOf(target: string): string {
  return target.replace(/-\d$/, '')
}

export const people = ['ada', 'bo', 'cyd', 'dee', 'eli', 'flo', 'gus', 'hal', 'ivy', 'jan'] as const

/** What a party is for one that connects to it. Nodes of the store are all others. */
export function partOf(name: string): Part {
  if (replicaNames.some((replica) => replica === name)) return 'clients'
  if (targets.some((target) => target === name)) return 'application'
  return name === 'provider' || name === 'decision' ? name : 'store'
}

/**
 * In ms: `session.idle_timeout`, `session.absolute_timeout`, the life of an access token, and
 * `session.device_binding.cookie_lifetime`.
 */
export const timeouts = { idle: 60_000, absolute: 180_000, accessToken: 20_000, boundCookie: 60_000 } as const
