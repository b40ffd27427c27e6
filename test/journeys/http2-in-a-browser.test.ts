import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { issueCertificates } from '../support/certificates.ts'
import { startChromium } from '../support/chromium.ts'
import { until } from '../support/until.ts'
import { startWorld } from '../support/world.ts'

const chromium = await startChromium()

test('A browser signs in, opens a WebSocket and an event stream over HTTP/2, and they end with the session', async (t) => {
  const { server } = issueCertificates()
  const world = await startWorld(t, {
    listen: (address) => `{ address: "${address}", tls: { cert_file: ${server.cert}, key_file: ${server.key} } }`,
    externalUrl: (port) => `https://127.0.0.1:${port}`,
    browserCa: readFileSync(server.ca, 'utf8'),
  })
  const jane = await chromium.person(t, { ignoreHTTPSErrors: true })
  const page = await jane.tab()

  await page.goto(`${world.url}/echo`)
  await page.getByRole('button', { name: 'Jane Doe' }).click()
  await page.waitForURL(`${world.url}/echo`)
  const protocol = await page.evaluate(`performance.getEntriesByType('navigation')[0].nextHopProtocol`)
  await page.evaluate(`(async () => {
    const socket = new WebSocket(location.origin.replace('http', 'ws') + '/ws')
    const events = new EventSource('/events')
    const received = (source) => new Promise((resolve) => source.addEventListener('message', resolve, { once: true }))
    socket.onclose = ({ code }) => (window.closeCode = code)
    window.hasClosedEvents = () => events.readyState === EventSource.CLOSED
    await Promise.all([received(socket), received(events)])
  })()`)
  await (await jane.tab()).goto(`${world.url}/logout`)

  assert.equal(protocol, 'h2')
  await until('the WebSocket of the page is closed', () => page.evaluate('window.closeCode !== undefined'))
  assert.equal(await page.evaluate('window.closeCode'), 1008)
  await until('the event stream of the page is closed', () => page.evaluate('window.hasClosedEvents()'))
  const access = world.replicas[0]?.access ?? []
  await until('the WebSocket has ended', () => access.some(({ path }) => path === '/ws'))
  const others = access.filter(({ http }) => http !== '2').map(({ path }) => path)
  assert.deepEqual(others, [])
})
