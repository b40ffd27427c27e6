import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pairsOf } from '../migrating/pairs.ts'

// snippets.test.ts checks that our rules give these outcomes, and `npm run test:migrating` that the
// other program does.
for (const [page, language, count] of [
  ['mod_auth_openidc.md', 'apache', 10],
  ['oauth2-proxy.md', 'toml', 3],
] as const)
  test(`Each configuration in ${page} has one of ours with its outcomes`, () => {
    const pairs = pairsOf(page, language)

    assert.ok(pairs.length >= count, `${pairs.length} pairs`)
    for (const { place, statements } of pairs) {
      const outcomes = (isSignedIn: boolean) =>
        statements.filter(({ as }) => (as !== undefined) === isSignedIn).map(({ expect }) => expect)
      assert.ok(outcomes(false).includes('sign_in'), place)
      assert.ok(outcomes(true).includes('pass'), place)
    }
  })
