import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { Ajv } from 'ajv'
import type { ApiWorld } from './api-world.ts'

const schema = JSON.parse(
  readFileSync(new URL('../../schemas/audit-event.schema.json', import.meta.url), 'utf8'),
) as object
const validate = new Ajv({ strict: true }).compile(schema)

/** The audit events, each of which matches the schema. */
export function auditsOf(world: ApiWorld) {
  const events = world.gateway.log.filter(({ fields }) => fields['audit'] === true)
  for (const { level, message, fields } of events) {
    const line = { level, time: '2026-01-02T03:04:05.678Z', msg: message, ...fields }
    assert.ok(validate(JSON.parse(JSON.stringify(line))), JSON.stringify([line, validate.errors]))
  }
  return events
}
