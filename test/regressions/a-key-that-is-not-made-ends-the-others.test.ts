import assert from 'node:assert/strict'
import { test } from 'node:test'
import { goOn } from '../support/form-browser.ts'
import { accessTokenSeconds, basic, send, signedIn, startKeyWorld } from '../support/key-world.ts'
import { formsOf, sendForm } from '../support/session-page.ts'

test('Where one revocation ends all tokens of the person, a key that is not made revokes none', async (t) => {
  const world = await startKeyWorld(t, {
    upstreamSettings: 'keys: { per_person: 1 }\n    rules: [{ path: /echo, keys: true }]',
    providerStartsDown: true,
  })
  // The provider is taken for Keycloak.
  world.provider.bend('/.well-known/openid-configuration', (body) => {
    body['token_endpoint'] = `${String(body['token_endpoint'])}?/protocol/openid-connect/`
  })
  await world.provider.up()
  const browsers = [await signedIn(world), await signedIn(world)]
  const forms = await Promise.all(
    browsers.map(async (browser) => {
      const form = formsOf(await browser.get(world.page)).find(({ button }) => button === 'Make a key')
      return form ?? assert.fail()
    }),
  )
  const made = []
  for (const [index, browser] of browsers.entries()) {
    const form = forms[index] ?? assert.fail()
    const fields = { ...form.fields, name: 'one', upstream: 'orders' }
    made.push(await goOn(browser, await sendForm(browser, { ...form, fields })))
  }
  assert.deepEqual(
    made.map(({ status }) => status),
    [200, 403],
  )

  // The provider gets this request last.
  world.moveClock((accessTokenSeconds + 1) * 1000)
  const key = /ghk_[\w-]{64}/.exec(made[0]?.body ?? '')?.[0] ?? ''
  assert.equal((await send(`${world.url}/echo`, basic(key))).status, 200)
  assert.equal(world.provider.hits('/oauth/revoke'), 0)
})
