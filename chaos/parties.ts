// Who takes part in a chaos run, and the times of sessions.

import type { Part } from './history.ts'

export const replicaNames = ['a', 'b', 'c', 'd'] as const
export const applications = ['orders', 'files', 'live'] as const
export const people = ['ada', 'bo', 'cyd', 'dee', 'eli', 'flo', 'gus', 'hal', 'ivy', 'jan'] as const

/** What a party is for one that connects to it. Nodes of the store are all others. */
export function partOf(name: string): Part {
  if (replicaNames.some((replica) => replica === name)) return 'clients'
  if (applications.some((application) => application === name)) return 'application'
  return name === 'provider' ? 'provider' : 'store'
}

/**
 * In ms: `session.idle_timeout`, `session.absolute_timeout`, and the life of an access token.
 */
export const timeouts = { idle: 60_000, absolute: 180_000, accessToken: 20_000 } as const
