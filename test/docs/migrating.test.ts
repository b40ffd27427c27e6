import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pairsOf } from '../migrating/pairs.ts'

// snippets.test.ts checks that our rules give these outcomes, and `npm run test:migrating` that the
// other program does.
test('Each configuration of Apache has one of ours with its outcomes', () => {
  const pairs = pairsOf('mod_auth_openidc.md', 'apache')

  assert.ok(pairs.length >= 10, `${pairs.length} pairs`)
  for (const { place, statements } of pairs) {
    const outcomes = (isSignedIn: boolean) =>
      statements.filter(({ as }) => (as !== undefined) === isSignedIn).map(({ expect }) => expect)
    assert.ok(outcomes(false).includes('sign_in'), place)
    assert.ok(outcomes(true).includes('pass'), place)
  }
})
