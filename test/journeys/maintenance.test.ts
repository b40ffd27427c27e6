import assert from 'node:assert/strict'
import { test } from 'node:test'
import { request, startHttp2World } from '../support/http2.ts'
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
  assert.match(page.body, /in 30 Minuten/)
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

const socket = { ':method': 'CONNECT', ':protocol': 'websocket', 'sec-websocket-version': '13' }
const path = '/echo'

// `undefined`: the stream is reset.
for (const [what, fields, status] of [
  ['GET', { path }, 503],
  ['OPTIONS', { ':method': 'OPTIONS', path }, 503],
  ['POST', { ':method': 'POST', path }, 503],
  ['an unknown method', { ':method': 'BREW', path }, 400],
  ['TRACE', { ':method': 'TRACE', path }, 501],
  ['CONNECT', { ':method': 'CONNECT', ':authority': '127.0.0.1' }, 501],
  ['a WebSocket', { ...socket, path }, 503],
  ['another protocol', { ...socket, ':protocol': 'connect-udp', path }, 501],
  ['a call of gRPC', { ':method': 'POST', 'content-type': 'application/grpc', te: 'trailers', path }, 200],
  ['an encoded path', { path: '/%65cho' }, 503],
  ['an empty segment', { path: '//echo' }, 503],
  ['dot segments', { path: '/static/../echo' }, 503],
  ['encoded dot segments', { path: '/static/%2e%2e/echo' }, 503],
  ['an encoded slash', { path: '/static%2f..%2fecho' }, 400],
  ['a backslash', { path: '/static/..\\echo' }, 400],
  ['parameters of a path', { path: '/echo;a=b' }, 503],
  ['an absolute form', { path: 'http://127.0.0.1/echo' }, undefined],
  ['a path without a slash', { path: 'echo' }, undefined],
  ['an asterisk', { ':method': 'OPTIONS', path: '*' }, 200],
  ['another authority', { ':authority': 'other.example', path }, 503],
  ['a Host beside the authority', { ':authority': 'other.example', host: '127.0.0.1', path }, 400],
  ['a header that names another path', { path, 'x-original-url': '/.gatehouse/health', 'x-forwarded-host': 'x' }, 503],
  ['a header that names another method', { path, 'x-http-method-override': 'CONNECT' }, 503],
  ['a made-up cookie', { path, cookie: `gatehouse=${'A'.repeat(64)}` }, 503],
  ['credentials', { path, authorization: 'Bearer a' }, 503],
] as const)
  test(`During maintenance, other requests on the HTTP/2 connection of an administrator do not get through: ${what}`, async (t) => {
    const seen: string[] = []
    const world = await startHttp2World(t, (req, res) => res.end(String(seen.push(req.url ?? ''))), {
      upstreamSettings: maintenance,
    })
    const jane = world.browser('jane')
    await jane.get(`${world.url}/.gatehouse/sign-in`)
    seen.length = 0
    const session = world.connect()
    const { path: at, ...others } = { path: undefined, ...fields }
    const attempt = () =>
      request(session, { ...(at !== undefined && { ':path': at }), ...others }).catch(() => undefined)

    const attempts = [attempt(), request(session, { ':path': '/of-jane', cookie: jane.cookieHeader }), attempt()]
    const [before, ofJane, after] = await Promise.all(attempts)
    const last = await attempt()

    assert.equal(ofJane?.status, 200)
    assert.deepEqual([before?.status, after?.status, last?.status], [status, status, status])
    if (what === 'a call of gRPC') assert.equal(last?.headers['grpc-status'], '14')
    assert.deepEqual(seen, ['/of-jane'])
  })
