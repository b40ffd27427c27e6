import assert from 'node:assert/strict'
import { test } from 'node:test'
import { httpUpstream } from '../proxy/support.ts'
import { startWorld } from '../support/world.ts'

test('The response to a request from before a new sign-in does not delete the new cookie', async (t) => {
  let asked = () => {}
  let response = () => {}
  const isAsked = new Promise<void>((resolve) => (asked = resolve))
  const { port } = await httpUpstream(t, (req, res) => {
    if (req.url !== '/open/slow') return void res.end('fast')
    response = () => void res.end('slow')
    asked()
  })
  const world = await startWorld(t, {
    upstream: new URL(`http://127.0.0.1:${port}`),
    upstreamSettings: 'rules: [{ path: /open/*, access: optional }]',
  })
  const jane = world.browser()
  await jane.get(`${world.url}/orders`)
  await world.provider.endSession(world.provider.sessions()[0]?.sid ?? '')

  const slow = jane.send(`${world.url}/open/slow`)
  await isAsked
  assert.equal((await jane.get(`${world.url}/orders`)).status, 200)
  response()

  assert.equal((await slow).headers['set-cookie'], undefined)
  assert.equal((await jane.send(`${world.url}/orders`)).status, 200)
})
