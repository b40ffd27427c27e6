import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ApiClaimConfig } from '../../src/config/model/provider.ts'
import { overdue, withApiClaims } from '../../src/session/record/api-claims.ts'

const groups: ApiClaimConfig = { id: 'id', name: 'groups', isMerged: false, everyMs: undefined, sources: [] }
const minute = 60_000
const now = 1_000 * minute

for (const [when, ageMs, expected] of [
  ['counts for an hour after it was read', 60 * minute - 1, []],
  ['does not count after that', 60 * minute + 1, ['groups']],
] as const)
  test(`A claim of an API that is due ${when}`, () => {
    const api_claims = { id: { read_at: now - ageMs, due_at: now - 1 } }

    assert.deepEqual(overdue([groups], { api_claims }, now, now), expected)
  })

test('An API whose response is unusable is read again after 5 minutes', () => {
  const { api_claims } = withApiClaims(
    {},
    [groups],
    new Map([['id', { kind: 'unusable', isRejected: false }]]),
    undefined,
    now,
  )

  assert.deepEqual(api_claims, { id: { due_at: now + 5 * minute } })
})
