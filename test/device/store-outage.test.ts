import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { loadConfig } from '../../src/config/load.ts'
import { Browser } from '../support/browser.ts'
import { issueCertificates } from '../support/certificates.ts'
import { deviceKey } from '../support/device-browser.ts'
import { commandsDuring } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { secrets } from '../support/world.ts'
import { acceptedMs, boundCookie, type DeviceWorld, startDeviceWorld } from './world.ts'

const at = async (browser: Browser, { url }: DeviceWorld) => (await browser.fetch(`${url}/api/me`)).status

/** Kills Redis, when the first replica has the sessions of these browsers in memory. */
async function killRedis(world: DeviceWorld, browsers: readonly Browser[]): Promise<void> {
  const { redis } = world
  assert.ok(redis)
  await until('the sessions are in memory', async () => {
    const commands = await commandsDuring(redis, () => Promise.all(browsers.map((browser) => at(browser, world))))
    return commands.every(([name]) => name !== 'hmget')
  })
  await redis.kill()
}

test('While Redis is away, a session in memory needs its key as before', async (t) => {
  const world = await startDeviceWorld(t, {
    store: 'redis',
    session: `store_outage_grace: 5m
  device_binding: { mode: required, on_misuse: end }`,
  })
  const [owner, late] = [await world.bound(), world.device('samir')]
  await late.get(`${world.url}/`)
  world.moveClock(31_000)
  await killRedis(world, [owner, late])

  assert.equal((await late.register()).status, 503, 'no key can be stored')
  assert.equal(await at(late, world), 200)
  owner.cookies.delete(boundCookie)
  assert.equal((await owner.renew(deviceKey())).status, 403, 'another key')
  assert.equal(owner.cookies.has(boundCookie), false)
  assert.equal((await owner.renew()).status, 200)
  assert.equal(await at(owner, world), 200)
  world.moveClock(30_000)
  assert.equal(await at(late, world), 403, 'the time for a registration is over')

  const thief = new Browser('samir', issueCertificates().client.ca)
  owner.stolenBy(thief)
  world.moveClock(acceptedMs)
  assert.equal((await owner.renew()).status, 200)
  assert.equal(await at(owner, world), 200)
  assert.equal(await at(thief, world), 401)

  assert.equal(world.events('session.bound_cookie_refused').at(-1)?.['reason'], 'expired')
  await until('the session has ended here', async () => (await at(owner, world)) !== 200)
})

test('A reload between the registration and a proof keeps the key, and applies to the next cookie', async (t) => {
  const binding = (more: string) => `device_binding: { mode: when_supported${more} }`
  const world = await startDeviceWorld(t, { store: 'redis', session: binding('') })
  const [first] = world.replicas
  assert.ok(first)
  let now = binding('')
  const reload = async (next: string) => {
    writeFileSync(first.file, readFileSync(first.file, 'utf8').replace(now, next))
    now = next
    const loaded = loadConfig(first.file, secrets)
    assert.ok(loaded.ok)
    await first.gateway.reload(loaded.config)
  }
  const owner = world.device()
  await owner.get(`${world.url}/`)

  await reload(binding(', cookie_lifetime: 1m'))
  assert.equal((await owner.register()).status, 200)
  const thief = new Browser('samir', issueCertificates().client.ca)
  owner.stolenBy(thief)
  world.moveClock(91_000)
  assert.equal(await at(thief, world), 401)
  assert.equal((await owner.renew()).status, 200)
  assert.equal(await at(owner, world), 200)

  await reload('device_binding: off')
  assert.equal(await at(thief, world), 200, 'without binding, the session cookie is enough')
  await reload(binding(', on_misuse: end'))
  assert.equal(await at(owner, world), 200)
  assert.equal(await at(thief, world), 401)
  await until('the session has ended', () => world.events('session.ended').at(-1)?.['by'] === 'misuse')
})
