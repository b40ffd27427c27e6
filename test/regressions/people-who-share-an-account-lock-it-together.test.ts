import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startSigningInApplication } from '../support/signing-in-application.ts'
import { secrets, startWorld } from '../support/world.ts'

const form = 'page: /login, fields: { user: "{username}", pass: "{password}" }'
const robot = 'username: { value: jane }, password: { env: PHPMYADMIN_PASSWORD }'

for (const [what, password, attempts] of [
  ['A wrong password is sent once', 'another', 1],
  ['A right one signs in each of them', secrets.PHPMYADMIN_PASSWORD, 3],
] as const)
  test(`People with one technical account open the application at the same time. ${what}`, async (t) => {
    const application = await startSigningInApplication(t)
    application.passwords.set('jane', password)
    const world = await startWorld(t, {
      upstream: application.url,
      store: 'redis',
      replicas: 2,
      upstreamSettings: `session_cookies: [APP, browser]
    application_sign_in: { ${form}, ${robot} }`,
    })
    const people = ['jane', 'noa', 'zoe'].map((person) => world.browser(person))
    for (const each of people) await each.get(`${world.url}/.gatehouse/sign-in?return_to=/.gatehouse/sessions`)

    const headers = { host: new URL(world.url).host }
    const urls = people.map((_, n) => `${world.replicas[n % 2]?.url}/orders`)
    const pages = await Promise.all(people.map((each, n) => each.send(urls[n] ?? '', { headers })))

    assert.equal(application.attempts.length, attempts)
    for (const { status } of pages) assert.equal(status, attempts === 1 ? 302 : 200)
  })
