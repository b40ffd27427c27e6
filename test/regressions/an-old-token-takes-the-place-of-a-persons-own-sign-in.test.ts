import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startSigningInApplication } from '../support/signing-in-application.ts'
import { startWorld } from '../support/world.ts'

const json = 'action: /login, json: { user: "{username}", pass: "{password}" }, token: token'

test('When a sign-in is left to the person, the application gets the token of the person', async (t) => {
  const application = await startSigningInApplication(t, 'json')
  application.passwords.set('jane', 'jane.doe@example.com')
  const world = await startWorld(t, {
    upstream: application.url,
    upstreamSettings: `application_sign_in: { ${json}, password: { claim: email } }`,
  })
  const jane = world.browser()
  assert.match((await jane.get(`${world.url}/orders`)).body, /Orders of jane/)
  application.endSessions()
  application.passwords.set('jane', 'changed')
  world.moveClock(2 * 60_000)
  assert.equal((await jane.send(`${world.url}/orders`)).status, 401)

  const body = JSON.stringify({ user: 'jane', pass: 'changed' })
  const own = { 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty', 'sec-fetch-site': 'same-origin' }
  const headers = { ...own, 'content-type': 'application/json', origin: world.url }
  const { token } = JSON.parse((await jane.send(`${world.url}/login`, { method: 'POST', headers, body })).body) as {
    token: string
  }

  const page = await jane.send(`${world.url}/orders`, { headers: { authorization: `Bearer ${token}` } })
  assert.match(page.body, /Orders of jane/)
})
