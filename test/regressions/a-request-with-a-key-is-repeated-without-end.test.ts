import assert from 'node:assert/strict'
import { test } from 'node:test'
import { basic, makeKey, send, startKeyWorld } from '../support/key-world.ts'
import { startSigningInApplication } from '../support/signing-in-application.ts'

for (const [what, settings, asking, requests] of [
  ['a form', 'page: /login, fields: { user: "{username}", pass: "{password}" }', 'redirect', 3],
  ['JSON', 'action: /login, json: { user: "{username}", pass: "{password}" }, token: token', 'json', 2],
  ['Basic', 'basic: true', 'basic', 3],
] as const)
  test(`A program with a key is signed in at the application once: ${what}`, async (t) => {
    const application = await startSigningInApplication(t, asking)
    application.passwords.set('jane', 'jane.doe@example.com')
    const world = await startKeyWorld(t, {
      upstream: application.url,
      upstreamSettings: `session_cookies: [APP, browser]
    application_sign_in: { ${settings}, password: { claim: email } }
    keys: { header: X-Api-Key }
    rules: [{ path: /*, keys: true }]`,
    })
    const jane = world.browser()
    await jane.get(`${world.url}/.gatehouse/sign-in?return_to=/.gatehouse/sessions`)
    const key = await makeKey(jane, world)
    // A request that is repeated without end gets no response.
    application.respond = (_req, res) => application.requests.length > 20 && Boolean(res.writeHead(500).end())

    for (const headers of [basic(key), { 'x-api-key': key }, basic(key)])
      assert.match((await send(`${world.url}/orders`, headers)).body, /Orders of jane/)

    assert.ok(application.requests.length <= requests + 2, String(application.requests.length))
    application.endSessions()
    world.moveClock(120_000)
    assert.match((await send(`${world.url}/orders`, basic(key))).body, /Orders of jane/)
  })
