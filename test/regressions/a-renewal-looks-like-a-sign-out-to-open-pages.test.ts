import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Browser } from '../support/browser.ts'
import { openSessionEvents } from '../support/session-events.ts'
import { openWebSocket } from '../support/streams.ts'
import { startWorld, type World } from '../support/world.ts'

/** Signs in again while the session is alive. */
async function renew(browser: Browser, { url }: World): Promise<void> {
  const { status } = await browser.get(`${url}/.gatehouse/sign-in?return_to=%2F.gatehouse%2Fsigned-in`)
  assert.equal(status, 200)
}

for (const [store, replicas] of [
  ['memory', 1],
  ['redis', 2],
] as const)
  test(`${store}: The streams of a session that its person has renewed say so, and go on with the new one`, async (t) => {
    const world = await startWorld(t, { store, replicas })
    const at = world.replicas.at(-1)?.url ?? ''
    const jane = world.browser()
    await jane.get(`${world.url}/echo`)
    const events = await openSessionEvents(t, at, jane)
    const first = await events.next()
    const { cookieHeader } = jane

    await renew(jane, world)

    assert.deepEqual(await events.next(), { name: 'renewed', data: {} })
    assert.equal(await events.next(), undefined, 'the stream ends')
    const early = await openSessionEvents(t, at, { cookieHeader }, { 'last-event-id': 'session' })
    assert.deepEqual(await early.next(), { name: 'renewed', data: {} }, 'without the new cookie')
    const again = await openSessionEvents(t, at, jane, { 'last-event-id': 'session' })
    const second = await again.next()
    assert.deepEqual([second?.name, second?.data.person], ['session', first?.data.person])

    await world.provider.endSession(world.provider.sessions()[0]?.sid ?? '')
    assert.equal((await again.next())?.name, 'ended')
    world.moveClock(61_000)
    if (store === 'memory') {
      const late = await openSessionEvents(t, at, { cookieHeader }, { 'last-event-id': 'session' })
      assert.equal((await late.next())?.name, 'ended', 'a renewal is forgotten after a minute')
    }
  })

test('The streams of a session that ends by the sign-in of another person say that it has ended', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  const events = await openSessionEvents(t, world.url, jane)
  await events.next()
  const samir = world.browser('samir')
  for (const [name, cookie] of jane.cookies) if (name === 'gatehouse') samir.cookies.set(name, cookie)

  await renew(samir, world)

  assert.deepEqual(await events.next(), { name: 'ended', data: {} })
})

test('WebSockets of the previous session close, because a copy of its cookie may have opened them', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  const { cookieHeader } = jane
  const copy = await openWebSocket(t, `${world.url}/ws`, cookieHeader)

  await renew(jane, world)

  assert.equal(await copy.closing, '1008 session ended')
  await (await openWebSocket(t, `${world.url}/ws`, jane.cookieHeader)).echo('again')
})
