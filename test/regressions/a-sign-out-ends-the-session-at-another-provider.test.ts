import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../src/core/clock.ts'
import { parsePathPattern } from '../../src/core/patterns.ts'
import { createAdmit } from '../../src/gate/admit.ts'
import { createRouteTable } from '../../src/gate/rules/route-table.ts'
import { TrustedProxies } from '../../src/http/forwarded.ts'
import { requestFacts } from '../../src/http/request-facts.ts'
import { unbound, upstream } from '../gate/rules/configs.ts'
import { Browser } from '../support/browser.ts'
import { isSignedIn, separate, twoProviders } from '../support/two-providers.ts'

test('The button of the question whether to sign out is for the provider that the question is about', async (t) => {
  const { url } = await twoProviders(t, { upstreams: separate })
  const jane = new Browser('jane')
  await jane.get(`${url}/staff/echo`)
  await jane.get(`${url}/partners/echo`)

  const question = await jane.send(`${url}/.gatehouse/partners/sign-out`, {
    headers: { 'sec-fetch-site': 'cross-site' },
  })
  const action = /<form[^>]* action="([^"]*)"/.exec(question.body)?.[1] ?? assert.fail(question.body)
  // A proxy or an extension may remove the Referer.
  await jane.send(new URL(action, question.url).href, {
    method: 'POST',
    headers: { 'sec-fetch-site': 'same-origin', 'content-type': 'application/x-www-form-urlencoded' },
  })

  assert.equal(await isSignedIn(jane, `${url}/partners/echo`), false)
  assert.equal(await isSignedIn(jane, `${url}/staff/echo`), true)
})

test('The logout link of an application with several providers names the application', () => {
  const wiki = upstream({
    path: '/wiki/',
    providers: ['staff', 'partners'],
    logout: [parsePathPattern('/wiki/logout')],
  })
  const providers = ['guests', 'staff', 'partners'].map((name) => ({ name, prefix: `/.gatehouse/${name}/` }))
  const admit = createAdmit(
    { upstreams: [wiki], reservedPrefix: '/.gatehouse/', session: unbound, providers },
    {
      routes: createRouteTable([wiki]),
      identify: () => assert.fail('nobody is identified'),
      identities: { isReady: () => true, of: () => assert.fail('nobody is identified') },
      clock: systemClock,
      isStrict: false,
      log: { debug() {}, info() {}, warn() {}, error() {}, announce() {} },
    },
  )
  const received = { method: 'GET', url: '/wiki/logout', headers: { host: 'orders.example.com' }, socket: {} }

  assert.deepEqual(admit(requestFacts(received, new TrustedProxies([]), '')), {
    kind: 'sign_out',
    location: '/.gatehouse/sign-out?return_to=%2Fwiki%2F',
  })
})
