import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exchangeRaw } from '../support/raw-exchange.ts'
import { startRecordingApplication } from '../support/recording-application.ts'
import { startWorld } from '../support/world.ts'

const maintenance = `rules:
      - path: /*
        respond: { maintenance: { retry_after: 30m, unless: { claim: fields.groups, any_of: [admins] } } }
      - { path: /owners/*, require: { claim: fields.groups, any_of: [owners] } }
      - { path: /static/*, access: public }
    logout: { paths: [/logout] }`

test('During maintenance, people get a page in their language and programs a problem, both with Retry-After', async (t) => {
  const application = await startRecordingApplication(t)
  const { url, browser } = await startWorld(t, { upstream: application.url, upstreamSettings: maintenance })
  const samir = browser('samir')

  const page = await samir.send(`${url}/static/a`, { headers: { 'accept-language': 'de' } })
  assert.deepEqual([page.status, page.headers['retry-after'], page.headers['content-language']], [503, '1800', 'de'])
  assert.equal(page.headers['cache-control'], 'no-store')
  assert.match(page.body, /wird gerade gewartet/)
  const script = await samir.send(`${url}/echo`, {
    method: 'POST',
    headers: { 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' },
  })
  assert.deepEqual([script.status, script.headers['content-type']], [503, 'application/problem+json'])
  assert.equal(script.headers['retry-after'], '1800')
  assert.deepEqual(application.seen, [])
})

test('Administrators are let through once they have signed in, and the other rules apply to them', async (t) => {
  const { url, browser } = await startWorld(t, { upstreamSettings: maintenance })
  const [jane, samir] = [browser('jane'), browser('samir')]

  assert.equal((await jane.send(`${url}/echo`)).status, 503)
  await jane.get(`${url}/.gatehouse/sign-in`)
  await samir.get(`${url}/.gatehouse/sign-in`)

  assert.equal((await jane.send(`${url}/echo`)).status, 200)
  assert.equal((await jane.send(`${url}/owners/a`)).status, 403)
  assert.equal((await jane.send(`${url}/echo?a=b`)).status, 200)
  assert.equal((await samir.send(`${url}/echo`)).status, 503)
  assert.equal((await samir.send(`${url}/static/a`)).status, 503)
})

test('During maintenance, people can sign out, and the provider ends sessions', async (t) => {
  const { url, browser, provider } = await startWorld(t, { upstreamSettings: maintenance })
  const jane = browser('jane')
  await jane.get(`${url}/.gatehouse/sign-in`)
  assert.equal((await jane.send(`${url}/echo`)).status, 200)

  assert.equal((await browser('samir').send(`${url}/logout`)).headers['location'], '/.gatehouse/sign-out')
  const [session] = provider.sessions()
  await provider.endSession(session?.sid ?? '')
  assert.equal((await jane.send(`${url}/echo`)).status, 503)
})

test('During maintenance, a WebSocket is refused with 503', async (t) => {
  const { url } = await startWorld(t, { upstreamSettings: maintenance })
  const fields =
    'Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13'

  const { text, statuses } = await exchangeRaw(
    Number(new URL(url).port),
    `GET /live HTTP/1.1\r\nHost: 127.0.0.1\r\n${fields}\r\n\r\n`,
  )

  assert.deepEqual(statuses, [503])
  assert.match(text, /^Retry-After: 1800\r$/im)
})
