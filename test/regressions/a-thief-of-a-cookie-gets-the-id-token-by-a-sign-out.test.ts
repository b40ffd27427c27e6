import assert from 'node:assert/strict'
import { test } from 'node:test'
import { boundCookie, startDeviceWorld } from '../device/world.ts'
import { Browser } from '../support/browser.ts'
import { issueCertificates } from '../support/certificates.ts'

/** How long requests are accepted without a bound cookie after the registration, in ms. */
const graceMs = 30_000

test('A sign-out with a copy of the cookie of a bound session does not show its ID Token', async (t) => {
  const world = await startDeviceWorld(t)
  const jane = await world.bound()
  const thief = new Browser('samir', issueCertificates().client.ca)
  jane.stolenBy(thief)
  thief.cookies.delete(boundCookie)
  world.moveClock(graceMs)

  const { status, headers } = await thief.send(`${world.url}/.gatehouse/sign-out`)

  assert.equal(status, 303)
  assert.equal(headers.location, `${world.url}/.gatehouse/signed-out?provider=not_asked`)
  assert.equal((await jane.fetch(`${world.url}/api/me`)).status, 401, 'the session has ended all the same')
})

test('A sign-out on the device still goes to the provider', async (t) => {
  const world = await startDeviceWorld(t)
  const jane = await world.bound()
  world.moveClock(graceMs)

  const { headers } = await jane.send(`${world.url}/.gatehouse/sign-out`)

  assert.match(String(headers.location), /[?&]id_token_hint=/)
})
