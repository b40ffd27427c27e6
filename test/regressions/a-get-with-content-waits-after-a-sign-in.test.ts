import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startSigningInApplication } from '../support/signing-in-application.ts'
import { startWorld } from '../support/world.ts'

// Its content has been sent to the application, so it cannot be sent again.
test('A GET with content gets the response of the application', async (t) => {
  const application = await startSigningInApplication(t)
  application.passwords.set('jane', 'jane.doe@example.com')
  const world = await startWorld(t, {
    upstream: application.url,
    upstreamSettings: `session_cookies: [APP, browser]
    application_sign_in:
      { page: /login, fields: { user: "{username}", pass: "{password}" }, password: { claim: email } }`,
  })
  const jane = world.browser()
  await jane.get(`${world.url}/.gatehouse/sign-in?return_to=/.gatehouse/sessions`)

  const asked = await jane.send(`${world.url}/orders`, { body: 'page=2' })
  assert.match(String(asked.headers['location']), /^\/login\?/)
  assert.deepEqual(application.attempts, [])

  assert.match((await jane.send(`${world.url}/orders`)).body, /Orders of jane/)
  assert.match((await jane.send(`${world.url}/orders`, { body: 'page=2' })).body, /Orders of jane/)
})
