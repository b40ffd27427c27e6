import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startApi } from '../support/api-world.ts'

test('A token that has expired within clock_tolerance is decided about once, and is accepted until then', async (t) => {
  const { call, token, move } = await startApi(t, {
    provider: 'clock_tolerance: 30s',
    rules: `[
      { path: /fixed/*, access_tokens: true, respond: { status: 200, text: fixed } },
      { path: /api/*, access_tokens: true } ]`,
  })
  const accepted = token()
  const statuses = async () => [(await call('/api/x', accepted)).status, (await call('/fixed/x', accepted)).status]

  move(120_000)
  assert.deepEqual(await statuses(), [200, 200])
  move(29_999)
  assert.deepEqual(await statuses(), [200, 200])
  move(1)
  assert.deepEqual(await statuses(), [401, 401])
})
