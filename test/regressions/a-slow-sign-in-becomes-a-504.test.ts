import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startSigningInApplication } from '../support/signing-in-application.ts'
import { startWorld } from '../support/world.ts'

const form = 'page: /login, fields: { user: "{username}", pass: "{password}" }, password: { claim: email }'

// The time of the sign-in counted as time that the application took for its response.
test('The sign-in at an application may take longer than response_timeout', async (t) => {
  const application = await startSigningInApplication(t)
  const world = await startWorld(t, {
    upstream: application.url,
    upstreamSettings: `session_cookies: [APP, browser]
    response_timeout: 300ms
    application_sign_in: { ${form} }`,
  })
  const jane = world.browser()
  await jane.get(`${world.url}/.gatehouse/sign-in?return_to=/.gatehouse/sessions`)
  let late = 0
  application.respond = (req, res) => {
    if (req.url === '/never') return true
    if (/APP=1/.test(req.headers.cookie ?? '')) res.end('Orders of jane')
    else if (req.method !== 'POST') return false
    // Another request, which begins now, meets the timeout first.
    else
      void jane.fetch(`${world.url}/never`).then(({ status }) => {
        late = status
        res.writeHead(303, { Location: '/', 'Set-Cookie': 'APP=1; Path=/' }).end()
      })
    return true
  }

  const page = await jane.send(`${world.url}/orders`)

  assert.deepEqual([late, page.status, page.body], [504, 200, 'Orders of jane'])
})
