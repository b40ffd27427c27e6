import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { EndedBy } from '../../src/session/live/endings.ts'

/** The compiler finds a cause that is missing here. */
const causes: Readonly<Record<EndedBy, true>> = {
  provider: true,
  provider_frame: true,
  person: true,
  administrator: true,
  new_sign_in: true,
  max_per_person: true,
  invalid_grant: true,
  invalid_tokens: true,
  userinfo_401: true,
  session_expiry: true,
  misuse: true,
  signal: true,
  earlier_order: true,
}

test('The schema of audit events has each cause of an ending, and docs/logout.md explains it', () => {
  const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
  const [, written = ''] =
    /"session\.ended": \{.*?"by": \{.*?"enum": (\[.*?\])/s.exec(read('schemas/audit-event.schema.json')) ?? []
  assert.deepEqual(new Set(JSON.parse(written) as string[]), new Set(Object.keys(causes)))
  const page = read('docs/logout.md')
  assert.deepEqual(
    Object.keys(causes).filter((cause) => !page.includes(`(\`${cause}\`)`)),
    [],
  )
})
