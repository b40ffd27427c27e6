import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startDecisionPoint } from '../support/decision-point.ts'
import { submit } from '../support/form-browser.ts'
import { startWorld } from '../support/world.ts'

test('The page about a form that no policy decision point decides does not say that sign-ins are unavailable', async (t) => {
  const point = await startDecisionPoint(t)
  const world = await startWorld(t, { upstreamSettings: `authorize_with: { url: "${point.url}" }` })
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  point.answer = (_req, res) => void res.writeHead(500).end()

  const page = await submit(jane, world.url)

  assert.equal(page.status, 503)
  assert.match(page.body, /What you entered was not sent and not saved\./)
  assert.match(page.body, /It cannot be decided at the moment whether you have access to this page\./)
  assert.doesNotMatch(page.body, /Sign-in and sessions/)
})
