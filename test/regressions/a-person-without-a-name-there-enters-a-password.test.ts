import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startSigningInApplication } from '../support/signing-in-application.ts'
import { startWorld } from '../support/world.ts'

// The gateway asked for the password first, stored it, and found only then that it had no name to
// send it with.
test('A person whose claim for the name is missing is not asked for the password', async (t) => {
  const application = await startSigningInApplication(t)
  const world = await startWorld(t, {
    upstream: application.url,
    upstreamSettings: `session_cookies: [APP]
    application_sign_in:
      page: /login
      fields: { user: "{username}", pass: "{password}" }
      username: { claim: wiki_name }`,
  })
  const jane = world.browser()

  const page = await jane.get(`${world.url}/orders`)

  assert.match(page.body, /<title>Sign in<\/title>/)
  const asked = await jane.get(`${world.url}/.gatehouse/application-sign-in?upstream=orders&return_to=/orders`)
  assert.equal(asked.url, `${world.url}/login?next=%2Forders`)
  const left = world.replicas[0]?.log.find(({ message }) => message === 'application_sign_in.left')
  assert.equal(left?.fields['reason'], 'a claim for username is missing')
})
