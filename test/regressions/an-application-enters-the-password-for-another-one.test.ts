import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startSigningInApplication } from '../support/signing-in-application.ts'
import { startWorld } from '../support/world.ts'

const form = 'page: /login, fields: { user: "{username}", pass: "{password}" }, username: { ask: true }'

// A script of an application may send any form to its own host, also to the endpoints there.
test('A password is entered at the host of its application only', async (t) => {
  const application = await startSigningInApplication(t)
  const world = await startWorld(t, {
    upstream: application.url,
    upstreamSettings: (url) => `external_url: ${url}
    application_sign_in: { ${form} }
    session_cookies: [APP]
  wiki:
    url: ${application.url.origin}
    external_url: ${url.replace('127.0.0.1', 'localhost')}
    session_cookies: [APP]
    application_sign_in: { ${form} }`,
  })
  const jane = world.browser()
  await jane.get(`${world.url}/.gatehouse/sign-in?return_to=/.gatehouse/sessions`)
  const endpoint = `${world.url}/.gatehouse/application-sign-in`
  const asked = await jane.send(`${endpoint}?upstream=orders`)
  const [, person = ''] = /name="person" value="([^"]*)"/.exec(asked.body) ?? []
  const post = (fields: Readonly<Record<string, string>>) =>
    jane.send(endpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin' },
      body: new URLSearchParams({ username: 'noa', password: 'secret', person, ...fields }).toString(),
    })
  const audited = () =>
    world.replicas
      .flatMap(({ log }) => log)
      .filter(({ message }) => message === 'application.secret')
      .map(({ fields }) => [fields['upstream'], fields['outcome']])

  assert.equal((await post({ upstream: 'wiki' })).headers['location'], '/')
  assert.equal((await jane.send(`${endpoint}?upstream=wiki`)).headers['location'], '/')
  assert.deepEqual(audited(), [])

  await post({ upstream: 'orders' })
  assert.equal(asked.status, 200)
  await post({ upstream: 'wiki', remove: '1' })
  assert.deepEqual(audited(), [
    ['orders', 'kept'],
    ['wiki', 'removed'],
  ])
})
