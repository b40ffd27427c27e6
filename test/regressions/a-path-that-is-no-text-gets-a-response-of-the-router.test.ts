import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startWorld } from '../support/world.ts'

// The router answered by itself: without a page, a request ID and the header fields of other
// refusals.
test('An endpoint whose path is no UTF-8 is refused like any other unknown path', async (t) => {
  const world = await startWorld(t)

  const response = await world.browser().send(`${world.url}/.gatehouse/%ff`)

  assert.equal(response.status, 400)
  assert.match(String(response.headers['content-type']), /^text\/html/)
  assert.equal(response.headers['cache-control'], 'no-store')
  assert.doesNotMatch(response.body, /FST_/)
})
