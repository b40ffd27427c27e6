import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { JarBrowser } from '../support/jar-browser.ts'
import { type SigningInApplication, startSigningInApplication } from '../support/signing-in-application.ts'
import { until } from '../support/until.ts'
import { startWorld, type World, type WorldOptions } from '../support/world.ts'

const form = `page: /login, fields: { user: "{username}", pass: "{password}" }`
/** The provider of the tests has the password of each person as a claim. */
const byClaim = 'username: sub, password: { claim: fields.password }'

async function worldWith(
  t: TestContext,
  settings: string,
  asking?: Parameters<typeof startSigningInApplication>[1],
  options: WorldOptions = {},
) {
  const application = await startSigningInApplication(t, asking)
  const world = await startWorld(t, {
    upstream: application.url,
    upstreamSettings: `session_cookies: [APP, browser]
    application_sign_in: { ${settings} }`,
    ...options,
  })
  return { application, world }
}

const technical = 'username: { value: jane }, password: { env: PHPMYADMIN_PASSWORD }'

async function technicalWorld(t: TestContext, more = form, asking?: Parameters<typeof startSigningInApplication>[1]) {
  const { application, world } = await worldWith(t, `${more}, ${technical}`, asking)
  application.passwords.set('jane', 'a password that only the gateway knows')
  return { application, world }
}

for (const asking of ['redirect', 'page'] as const)
  test(`A signed-in person gets the page without seeing the form: ${asking}`, async (t) => {
    const { application, world } = await technicalWorld(t, form, asking)
    const jane = new JarBrowser('jane')

    const page = await jane.get(`${world.url}/orders?page=2`)

    assert.equal(page.status, 200)
    assert.equal(page.url, `${world.url}/orders?page=2`)
    assert.match(page.body, /Orders of jane/)
    assert.equal(application.attempts.length, 1)
    assert.deepEqual(jane.places, [])
    assert.match((await jane.get(`${world.url}/other`)).body, /Orders of jane/)
    assert.equal(application.attempts.length, 1)
  })
