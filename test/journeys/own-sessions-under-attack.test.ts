import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startDeviceWorld } from '../device/world.ts'
import type { Browser } from '../support/browser.ts'
import { formsOf, press, sendForm } from '../support/session-page.ts'
import { until } from '../support/until.ts'
import { startWorld, type World } from '../support/world.ts'

async function signedIn(world: World, person = 'jane'): Promise<Browser> {
  const browser = world.browser(person)
  assert.equal((await browser.get(`${world.url}/echo`)).status, 200)
  return browser
}

const pageOf = ({ url }: World) => `${url}/.gatehouse/sessions`

test('Without session.page, no form shows a signed-in person their sessions', async (t) => {
  const world = await startWorld(t, { session: 'max_per_person: { count: 2, when_exceeded: refuse }' })
  const jane = await signedIn(world)

  const { status, body } = await sendForm(jane, { action: pageOf(world), fields: { session: 'x' } })

  assert.equal(status, 200)
  assert.doesNotMatch(body, /<h2>|127\.0\.0\.1<\/dd>/)
})

test('Where a session has to be bound, one without a key does not show the others, and ends none', async (t) => {
  const world = await startDeviceWorld(t, { session: 'page: true\n  device_binding: required' })
  const [plain, bound] = [world.browser(), await world.bound()]
  await plain.get(`${world.url}/`)
  const shown = await plain.get(pageOf(world))
  assert.match(shown.body, /<h2>/, 'the browser may still register a key')
  world.moveClock(60_000)

  const { status, body } = await plain.get(pageOf(world))

  assert.equal(status, 403)
  assert.match(body, /a session that is bound to your device/)
  for (const form of formsOf(shown).filter(({ fields }) => 'session' in fields))
    assert.doesNotMatch((await sendForm(plain, form)).body, /<h2>/)
  assert.equal((await bound.send(`${world.url}/`)).status, 200)
})

test('A person who ends many sessions does not keep others from signing in', async (t) => {
  const world = await startWorld(t, { session: 'page: true' })
  const browsers = await Promise.all(Array.from({ length: 40 }, () => signedIn(world)))
  const waiting: (() => void)[] = []
  const open = world.provider.fault('/oauth/logout', (_req, res) => {
    waiting.push(() => void res.writeHead(200).end())
  })
  const here = browsers[0] as Browser

  const page = await press(here, await here.get(pageOf(world)), /^End all other/)

  assert.match(page.body, /The other sessions have ended\./)
  await until('the provider is asked', () => waiting.length >= 10)
  await signedIn(world, 'samir')
  assert.equal(waiting.length, 10, 'one batch after the other')
  open()
  for (const respond of waiting) respond()
  await until('all end at the provider', () => world.provider.sessions().length === 2 + 10)
})
