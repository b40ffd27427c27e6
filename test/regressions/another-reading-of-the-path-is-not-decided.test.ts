import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decide, startDecisionPoint } from '../support/decision-point.ts'
import { startRecordingApplication } from '../support/recording-application.ts'
import { startWorld } from '../support/world.ts'

test('A path that an application may read as a denied one is denied', async (t) => {
  const point = await startDecisionPoint(t)
  const application = await startRecordingApplication(t)
  const world = await startWorld(t, {
    upstream: application.url,
    upstreamSettings: `authorize_with: { url: "${point.url}" }`,
  })
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  point.answer = (req, res, evaluation) => {
    const { id } = evaluation['resource'] as { readonly id: string }
    decide({ decision: !id.startsWith('/secret/') })(req, res, evaluation)
  }
  application.seen.length = 0

  for (const path of ['/secret/1', '/secret%2f1', '/secret%252f1', '/secret;v=1/1', '/s%65cret/1', '/x/..;/secret/1'])
    assert.ok([400, 403].includes((await jane.fetch(world.url + path)).status), path)

  assert.deepEqual(application.seen, [])
  assert.equal((await jane.fetch(`${world.url}/caf%C3%A9%20au%20lait`)).status, 200)
  assert.deepEqual(
    point.asked.slice(-2).map(({ resource }) => (resource as { readonly id: string }).id),
    ['/caf%C3%A9%20au%20lait', '/café au lait'],
  )
})
