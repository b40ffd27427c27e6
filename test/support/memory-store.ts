import type { Clock } from '../../src/core/clock.ts'
import { SqliteStore } from '../../src/session/store/sqlite/sqlite-store.ts'

export const log = { debug() {}, info() {}, warn() {}, error() {}, announce() {} }

/** A store in the memory of this process. */
export function memoryStore({
  maxSessions,
  clock,
}: {
  readonly maxSessions: number
  readonly clock: Clock
}): SqliteStore {
  return new SqliteStore({ maxSessions, clock, log })
}
