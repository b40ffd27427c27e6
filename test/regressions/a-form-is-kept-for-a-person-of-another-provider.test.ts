import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Browser } from '../support/browser.ts'
import { startFormApplication } from '../support/form-application.ts'
import { goOn, press, submit } from '../support/form-browser.ts'
import { shared, signInAt, twoProviders } from '../support/two-providers.ts'

for (const [first, second] of [
  ['staff', 'partners'],
  ['partners', 'staff'],
] as const)
  for (const cookie of ['with', 'without'] as const)
    test(`A form of a person of ${second} does not wait for the person of ${first} who used the browser before, ${cookie} the cookie of the session`, async (t) => {
      const application = await startFormApplication(t)
      const options = { upstreams: shared, application: application.url, session: 'idle_timeout: 1m' }
      const { url, moveClock } = await twoProviders(t, options)
      const browser = new Browser('jane')
      await signInAt(browser, first, `${url}/forms`)
      await browser.get(`${url}/.gatehouse/${second}/sign-in?return_to=/forms`)
      moveClock(61_000)
      if (cookie === 'without') browser.cookies.delete(`gatehouse-at-${second}`)

      const page = await goOn(browser, await submit(browser, url))

      assert.equal(new URL(page.url).pathname, `/.gatehouse/${second}/kept-request`)
      assert.equal((await press(browser, page, 'Send now')).status, 200)
      assert.equal(application.received.length, 1)
    })

test('A form that needs a stronger sign-in waits for its person at the provider of the session', async (t) => {
  const application = await startFormApplication(t)
  const upstreams = (upstream: URL) =>
    `${shared(upstream)}    rules: [{ path: /orders/*, step_up: { acr_values: [mfa] } }]\n`
  const { url } = await twoProviders(t, { upstreams, application: application.url })
  const browser = new Browser('jane')
  await signInAt(browser, 'staff', `${url}/forms`)
  const ofStaff = browser.cookies.get('gatehouse-at-staff-person')
  await browser.get(`${url}/.gatehouse/partners/sign-in?return_to=/forms`)
  // A browser may bring a cookie of an earlier version, which did not expire it.
  if (ofStaff !== undefined) browser.cookies.set('gatehouse-at-staff-person', ofStaff)

  const page = await goOn(browser, await submit(browser, url))

  assert.equal(new URL(page.url).pathname, '/.gatehouse/partners/kept-request')
  assert.equal((await press(browser, page, 'Send now')).status, 200)
})
