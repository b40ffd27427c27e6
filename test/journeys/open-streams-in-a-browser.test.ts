import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { startChromium } from '../support/chromium.ts'
import { startWorld, type Replica, type WorldOptions } from '../support/world.ts'

const chromium = await startChromium()

/**
 * Opens a page of the application with a WebSocket and an event stream, and waits until both have
 * received something.
 */
async function openPage(t: TestContext, options: WorldOptions = {}) {
  const world = await startWorld(t, options)
  const page = await (await chromium.person(t)).tab()
  await page.goto(`${world.url}/echo`)
  await page.getByRole('button', { name: 'Jane Doe' }).click()
  await page.waitForURL(`${world.url}/echo`)
  await page.evaluate(`(async () => {
    const socket = new WebSocket(location.origin.replace('http', 'ws') + '/ws')
    const events = new EventSource('/events')
    const received = (source) => new Promise((resolve) => source.addEventListener('message', resolve, { once: true }))
    window.closing = new Promise((resolve) => {
      socket.onclose = ({ code, reason, wasClean }) => resolve({ code, reason, wasClean })
    })
    window.opened = 0
    events.onopen = () => (window.opened += 1)
    window.failures = []
    window.failing = new Promise((resolve) => {
      events.onerror = () => {
        window.failures.push(events.readyState)
        if (events.readyState === EventSource.CLOSED) resolve()
      }
    })
    await Promise.all([received(socket), received(events)])
  })()`)
  return { world, page }
}

test('A page learns from its WebSocket and its event stream that the session has ended', async (t) => {
  const { world, page } = await openPage(t)
  const [session] = world.provider.sessions()

  await world.provider.endSession(session?.sid ?? '')

  assert.deepEqual(await page.evaluate('closing'), { code: 1008, reason: 'session ended', wasClean: true })
  // The stream breaks off. The browser reconnects by itself, and the rejection makes it stop.
  await page.evaluate('failing')
  assert.deepEqual(await page.evaluate('failures'), [0, 2])
})

test('A page learns that the gateway stops, and its event stream reconnects to the next gateway', async (t) => {
  const { world, page } = await openPage(t, { store: 'redis' })
  const [replica] = world.replicas as [Replica]
  const { port } = replica.gateway.address

  await replica.stop()

  assert.deepEqual(await page.evaluate('closing'), { code: 1001, reason: 'going away', wasClean: true })
  await world.startReplica({ port })

  await page.waitForFunction('opened === 2')
  assert.deepEqual(new Set((await page.evaluate('failures')) as number[]), new Set([0]))
})
