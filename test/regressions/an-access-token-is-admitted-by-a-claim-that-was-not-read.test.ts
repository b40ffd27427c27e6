import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startApi } from '../support/api-world.ts'

const rules = '[{ path: /api/*, access_tokens: true, require: { claim: groups, none_of: [suspended] } }]'
const entry = 'url: "https://api.example.com/groups", select: "[].id", as: groups'

test('A claim of claims_from that an access token lacks satisfies no requirement, also none of none_of', async (t) => {
  const world = await startApi(t, { rules, provider: `claims_from: [{ ${entry} }]` })

  assert.equal((await world.call('/api/a', world.token())).status, 403)
  assert.equal((await world.call('/api/a', world.token({ groups: ['staff'] }))).status, 200)
  assert.equal((await world.call('/api/a', world.token({ groups: ['suspended'] }))).status, 403)
})

test('A part of a claim in an access token, to which an API has more, satisfies no requirement', async (t) => {
  const world = await startApi(t, { rules, provider: `claims_from: [{ ${entry}, merge: true }]` })

  assert.equal((await world.call('/api/a', world.token({ groups: ['staff'] }))).status, 403)
})
