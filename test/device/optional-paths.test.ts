import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Browser } from '../support/browser.ts'
import { issueCertificates } from '../support/certificates.ts'
import { openWebSocket } from '../support/streams.ts'
import { until } from '../support/until.ts'
import { type DeviceWorld, startDeviceWorld } from './world.ts'

const optional = { upstreamSettings: 'rules: [{ path: /echo, access: optional }]' }

/** A browser with the cookies of a bound session, but without its key, when they are over. */
async function copyOf(world: DeviceWorld): Promise<Browser> {
  const owner = await world.bound()
  const thief = new Browser('samir', issueCertificates().client.ca)
  owner.stolenBy(thief)
  world.moveClock(6 * 60_000)
  return thief
}

const reasons = (world: DeviceWorld) =>
  world.events('session.bound_cookie_refused').map(({ reason, sub }) => [reason, sub])

test('A copied cookie on an optional path gives no identity, and is recorded once a minute', async (t) => {
  const world = await startDeviceWorld(t, optional)
  const thief = await copyOf(world)

  for (let times = 0; times < 3; times += 1) {
    const { status, body } = await thief.fetch(`${world.url}/echo`)
    assert.equal(status, 200)
    assert.doesNotMatch(body, /jane/i)
  }

  assert.deepEqual(reasons(world), [['expired', 'jane']])
})

test('So is a WebSocket on an optional path', async (t) => {
  const world = await startDeviceWorld(t, { upstreamSettings: 'rules: [{ path: /ws, access: optional }]' })
  const thief = await copyOf(world)

  const socket = await openWebSocket(t, `${world.url}/ws`, thief.cookieHeader, issueCertificates().client)
  await socket.echo('nobody in particular')

  assert.deepEqual(reasons(world), [['expired', 'jane']])
})

test('With on_misuse: end, a copied cookie on an optional path ends the session', async (t) => {
  const session = 'device_binding: { mode: when_supported, on_misuse: end }'
  const world = await startDeviceWorld(t, { ...optional, session })
  const thief = await copyOf(world)

  assert.equal((await thief.fetch(`${world.url}/echo`)).status, 200)

  await until('the session has ended', () => world.events('session.ended').length > 0)
  assert.equal(world.events('session.ended')[0]?.['by'], 'misuse')
})
