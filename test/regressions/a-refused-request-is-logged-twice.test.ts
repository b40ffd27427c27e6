import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startWorld } from '../support/world.ts'

test('A denied request is one log event, and so is a failed sign-in', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser('samir')
  await jane.get(`${world.url}/echo`)
  const log = world.replicas[0]?.log ?? []
  const before = log.length

  assert.equal((await jane.get(`${world.url}/admin/`)).status, 403)
  assert.equal((await world.browser().send(`${world.url}/.gatehouse/callback?code=x&state=y`)).status, 400)

  assert.deepEqual(
    log.slice(before).map(({ message }) => message),
    ['access.denied', 'sign_in.failed'],
  )
})
