// Who takes part in a chaos run, and the times of sessions.

export const replicaNames = ['a', 'b', 'c', 'd'] as const
export const applications = ['orders', 'files', 'live'] as const
export const people = ['ada', 'bo', 'cyd', 'dee', 'eli', 'flo', 'gus', 'hal', 'ivy', 'jan'] as const

/** In ms: `session.idle_timeout`, `session.absolute_timeout` and `session.store_outage_grace`. */
export const timeouts = { idle: 60_000, absolute: 180_000, grace: 3_000 } as const
