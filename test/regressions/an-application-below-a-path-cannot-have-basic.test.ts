import assert from 'node:assert/strict'
import { test } from 'node:test'
import { JarBrowser } from '../support/jar-browser.ts'
import { startSigningInApplication } from '../support/signing-in-application.ts'
import { startWorld } from '../support/world.ts'

// The default of `action` was the start page of the host, which another upstream may serve. So
// `gatehouse check` demanded an `action` that Basic does not have.
test('An application below a path signs people in with Basic, without an address for it', async (t) => {
  const application = await startSigningInApplication(t, 'basic')
  application.passwords.set('jane', 'jane.doe@example.com')
  const world = await startWorld(t, {
    upstream: application.url,
    upstreamSettings: 'path: /shop/\n    application_sign_in: { basic: true, password: { claim: email } }',
  })

  const { status, body } = await new JarBrowser('jane').get(`${world.url}/shop/page`)

  assert.equal(status, 200)
  assert.match(body, /Orders of jane/)
})
