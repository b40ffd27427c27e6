import assert from 'node:assert/strict'
import { test } from 'node:test'
import { auditEventsIn } from '../support/audit-schema.ts'
import { startWorld } from '../support/world.ts'

test('A sign-in under way that an administrator ends by its e-mail address is audited as ended by an administrator', async (t) => {
  const world = await startWorld(t, { settings: 'admin: { listen: "127.0.0.1:0", page: {} }' })
  const jane = world.browser('jane')
  const callback = await jane.until(`${world.url}/echo`, '/.gatehouse/callback')

  const [{ gateway, log } = assert.fail()] = world.replicas
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ email: 'Jane.Doe@example.com' })
  assert.equal(
    (await fetch(`http://127.0.0.1:${gateway.adminAddress?.port}/sessions/end`, { method: 'POST', headers, body }))
      .status,
    200,
  )
  await jane.get(callback)

  const ended = auditEventsIn(log).filter(({ message }) => message === 'session.ended')
  assert.deepEqual(
    ended.map(({ fields }) => fields['by']),
    ['administrator'],
  )
})
