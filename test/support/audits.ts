import type { ApiWorld } from './api-world.ts'
import { auditEventsIn } from './audit-schema.ts'

/** The audit events, each of which matches the schema. */
export function auditsOf(world: ApiWorld) {
  return auditEventsIn(world.gateway.log)
}
