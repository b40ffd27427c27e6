import { readFileSync } from 'node:fs'
import { Ajv } from 'ajv'
import type { LogLine } from './world.ts'

const file = new URL('../../schemas/audit-event.schema.json', import.meta.url)
const validate = new Ajv({ strict: true }).compile(JSON.parse(readFileSync(file, 'utf8')) as object)

/**
 * The audit events in a log.
 * @throws when one does not match the schema
 */
export function auditEventsIn(log: readonly LogLine[]): readonly LogLine[] {
  const events = log.filter(({ fields }) => fields['audit'] === true)
  for (const { level, message, fields } of events) {
    const line = { level, time: '2026-01-02T03:04:05.678Z', msg: message, ...fields }
    if (!validate(JSON.parse(JSON.stringify(line)))) throw new Error(JSON.stringify([line, validate.errors]))
  }
  return events
}
