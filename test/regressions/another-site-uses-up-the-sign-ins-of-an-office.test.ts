import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startWorld } from '../support/world.ts'

const image = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' }
const inAdvance = {
  'sec-fetch-site': 'cross-site',
  'sec-fetch-mode': 'navigate',
  'sec-fetch-dest': 'document',
  'sec-purpose': 'prefetch;anonymous-client-ip',
}
const frame = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' }

for (const [what, path, headers] of [
  ['images of the sign-in', 'sign-in', image],
  ['frames of the sign-in', 'sign-in', frame],
  ['sign-ins that are fetched in advance', 'sign-in', inAdvance],
  ['images of a sign-in by a portal', 'initiate-login?iss=x', image],
  ['images of callbacks', 'callback?state=x&code=y', image],
  ['frames of callbacks', 'callback?state=x&code=y', frame],
  ['callbacks that are fetched in advance', 'callback?state=x&code=y', inAdvance],
  ['frames that end sessions', 'frontchannel-logout?iss=x&sid=y', frame],
] as const)
  test(`A page of another site with ${what} does not keep people at the same address from signing in`, async (t) => {
    const world = await startWorld(t, {
      providerSettings: 'frontchannel_logout: true',
      settings: 'limits: { per_client: { sign_ins: 3/m, callbacks: 3/m } }',
    })
    const visitor = world.browser('joe')

    for (let count = 0; count < 10; count += 1) await visitor.send(`${world.url}/.gatehouse/${path}`, { headers })

    const { status, url } = await world.browser().get(`${world.url}/echo`)
    assert.deepEqual([status, url], [200, `${world.url}/echo`])
  })
