import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startWorld } from '../support/world.ts'

test('A path that an application may read as one with a step-up does not arrive without it', async (t) => {
  const world = await startWorld(t, {
    upstreamSettings: 'rules: [{ path: /admin/*, step_up: { acr_values: [hardware] } }]',
  })
  const jane = world.browser()
  assert.equal((await jane.get(`${world.url}/echo`)).status, 200)

  for (const path of ['/admin%2Fusers', '/admin;v=1/users', '/admin./users', '/admin%3Fusers', '/%2Fadmin/users'])
    assert.equal((await jane.send(world.url + path)).status, 400, path)
  assert.notEqual((await jane.send(`${world.url}/other%2Fadmin`)).status, 400)
})
