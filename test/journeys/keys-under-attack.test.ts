import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { startHttp2World } from '../support/http2.ts'
import { type KeyWorld, basic, makeKey, send, signedIn, startKeyWorld } from '../support/key-world.ts'
import { startRecordingApplication } from '../support/recording-application.ts'
import { formsOf, sendForm } from '../support/session-page.ts'
import { openWebSocket } from '../support/streams.ts'

/** Two upstreams, whose application records what it gets. */
async function started(t: Parameters<typeof startKeyWorld>[0]) {
  const { url: upstream, seen } = await startRecordingApplication(t)
  const world = await startKeyWorld(t, {
    upstream,
    headers: '{ X-Remote-User: sub }',
    upstreamSettings: `keys: { header: X-Api-Key }
    rules: [{ path: /dav/*, keys: true, unauthenticated: 401 }, { path: /public/*, access: public }]
  other:
    url: ${upstream.origin}
    path: /other/
    keys: {}
    rules: [{ path: /other/public/*, access: public }, { path: /other/*, keys: true }]
  plain:
    url: ${upstream.origin}
    path: /plain/
    rules: [{ path: /plain/*, access: public }]`,
  })
  const jane = world.browser()
  await jane.get(`${world.url}/.gatehouse/sign-in?return_to=/.gatehouse/sessions`)
  const samir = world.browser('samir')
  await samir.get(`${world.url}/.gatehouse/sign-in?return_to=/.gatehouse/sessions`)
  const key = await makeKey(jane, world)
  seen.length = 0
  return { world, seen, jane, samir, key, url: world.url }
}

const anyKey = () => `ghk_${randomBytes(48).toString('base64url')}`

test('A key that is guessed ten thousand times is slowed, and the right one still works', async (t) => {
  const { world, key, seen } = await started(t)
  assert.equal((await send(`${world.url}/dav/x`, basic(key))).status, 200)
  const statuses = new Map<number, number>()
  const guess = async () => {
    const { status } = await send(`${world.url}/dav/x`, basic(anyKey()))
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
  }

  for (let sent = 0; sent < 10_000; sent += 50) await Promise.all(Array.from({ length: 50 }, guess))

  assert.deepEqual([...statuses.keys()].toSorted(), [401, 429])
  assert.ok((statuses.get(401) ?? 0) <= 60, String(statuses.get(401)))
  assert.equal(seen.length, 1)
  assert.equal((await send(`${world.url}/dav/x`, basic(key))).status, 200)
  const refused = world.replicas[0]?.log.filter(({ message }) => message === 'caller.refused') ?? []
  assert.ok(refused.length < 100, 'the log has no line for each guess')
})

test('Whatever a request sends beside or around a key, the application gets no key', async (t) => {
  const { url, key, seen, jane, samir } = await started(t)
  const bearer = `Bearer ${key}`
  const cases: readonly (readonly [
    what: string,
    status: number,
    path: string,
    headers: Record<string, string | string[]>,
  ])[] = [
    ['twice', 401, '/dav/x', { authorization: [bearer, bearer] }],
    ['twice in one field', 401, '/dav/x', { authorization: `${bearer}, ${bearer}` }],
    ['in two headers', 401, '/dav/x', { authorization: bearer, 'x-api-key': key }],
    ['twice in its header', 401, '/dav/x', { 'x-api-key': [key, key] }],
    ['cut', 401, '/dav/x', { authorization: bearer.slice(0, -1) }],
    ['with another scheme', 401, '/dav/x', { authorization: `Token ${key}` }],
    ['as a name', 401, '/dav/x', { authorization: `Basic ${Buffer.from(`${key}:`).toString('base64')}` }],
    ['as a cookie', 401, '/dav/x', { cookie: `gatehouse=${key}` }],
    ['as a cookie without its prefix', 401, '/dav/x', { cookie: `gatehouse=${key.slice(4)}` }],
    ['that is the cookie of a session', 401, '/dav/x', basic(`ghk_${jane.cookies.get('gatehouse')?.value}`)],
    ['that is wrong, with the cookie of somebody', 401, '/dav/x', { ...basic(anyKey()), cookie: samir.cookieHeader }],
    ['for another upstream', 401, '/other/x', basic(key)],
    ['where no rule accepts it', 401, '/elsewhere', basic(key)],
    ['where no rule accepts it, with a session', 401, '/elsewhere', { ...basic(key), cookie: jane.cookieHeader }],
    ['with the cookie of somebody else', 200, '/dav/x', { ...basic(key), cookie: samir.cookieHeader }],
    ['on a public path', 200, '/public/x', basic(key)],
    ['on a public path, in its header', 200, '/public/x', { 'x-api-key': key }],
    ['that is another text in its header', 401, '/dav/x', { 'x-api-key': 'another' }],
    ['that is another text in its header, on a public path', 200, '/public/x', { 'x-api-key': 'another' }],
    ['on a public path, with another scheme', 200, '/public/x', { authorization: `Token ${key}` }],
    ['on a public path of another upstream', 200, '/other/public/x', { authorization: bearer, 'x-other': key }],
    ['on a public path of an upstream without keys', 200, '/plain/x', basic(key)],
    ['beside credentials of the application', 200, '/dav/x', { 'x-api-key': key, authorization: 'Bearer of-the-app' }],
  ]
  for (const [what, status, path, headers] of cases) {
    seen.length = 0
    assert.equal((await send(url + path, headers)).status, status, what)
    assert.equal(seen.length, status === 200 ? 1 : 0, what)
    const got = JSON.stringify(seen)
    assert.ok(!got.includes(key) && !got.includes(Buffer.from(`any:${key}`).toString('base64')), what)
    if (what === 'with the cookie of somebody else') assert.equal(seen[0]?.['x-remote-user'], 'jane')
    assert.equal(seen[0]?.['x-api-key'], undefined, what)
    if (what.startsWith('beside')) assert.equal(seen[0]?.authorization, 'Bearer of-the-app')
  }
})

test('No cache keeps a response to a key, and the application sets no cookie of the gateway', async (t) => {
  const application = createServer((_req, res) => {
    const fields = { 'Cache-Control': 'public, s-maxage=60', 'CDN-Cache-Control': 'max-age=60' }
    res.writeHead(200, { ...fields, 'Set-Cookie': ['gatehouse=evil', 'own=1'] }).end('x'.repeat(2000))
  })
  await once(application.listen(0, '127.0.0.1'), 'listening')
  t.after(() => void application.close().closeAllConnections())
  const world = await startKeyWorld(t, {
    upstream: new URL(`http://127.0.0.1:${(application.address() as AddressInfo).port}`),
    upstreamSettings: `compress: true
    keys: { header: X-Api-Key }
    rules: [{ path: /dav/*, keys: true }]`,
  })
  const jane = world.browser()
  await jane.get(`${world.url}/.gatehouse/sign-in?return_to=/.gatehouse/sessions`)
  const key = await makeKey(jane, world)

  for (const credentials of [basic(key), { 'x-api-key': key }]) {
    const { status, headers } = await send(`${world.url}/dav/x`, { ...credentials, 'accept-encoding': 'gzip' })
    assert.deepEqual([status, headers['cache-control'], headers['cdn-cache-control']], [200, 'private', undefined])
    assert.equal(headers['set-cookie'], 'own=1')
    assert.equal(headers['content-encoding'], undefined, 'a length that an attacker can compare')
  }
})

test('No page of another origin, and no form of another browser, begins a sign-in for a key', async (t) => {
  const { world, jane, samir } = await started(t)
  const form = formsOf(await jane.get(world.page)).find(({ button }) => button === 'Make a key')
  assert.ok(form)
  const fields = { ...form.fields, name: 'x', upstream: 'orders' }

  for (const site of ['cross-site', 'same-site'])
    assert.equal((await sendForm(jane, { ...form, fields }, { 'sec-fetch-site': site })).status, 403)
  assert.equal((await sendForm(samir, { ...form, fields })).status, 403)
  assert.equal((await sendForm(jane, { ...form, fields: { ...fields, name: ' ' } })).status, 400)
  assert.equal((await sendForm(jane, form)).status, 400)
  assert.equal((await sendForm(jane, { ...form, fields: { ...fields, upstream: 'plain' } })).status, 403)
  assert.equal((await sendForm(world.browser(), { ...form, fields })).status, 303)
})

test('A key works over HTTP/2 and in a WebSocket, whose end is the end of the key', async (t) => {
  const world = await startKeyWorld(t)
  const jane = await signedIn(world)
  const key = await makeKey(jane, world)
  const socket = await openWebSocket(t, `${world.url}/ws`, basic(key))
  await assert.rejects(openWebSocket(t, `${world.url}/ws`, basic(anyKey())))

  const page = await jane.get(world.page)
  const end = formsOf(page).find(({ button }) => button.startsWith('End the key'))
  assert.ok(end)
  await sendForm(jane, end)

  assert.match(await socket.closing, /^1008|^4\d\d\d/)

  const got: string[] = []
  const secure = await startHttp2World(
    t,
    (req, res) => {
      got.push(JSON.stringify(req.headers))
      res.end('ok')
    },
    {
      session: 'page: true',
      upstreamSettings: 'keys: {}\n    rules: [{ path: /dav/*, keys: true }]',
      provider: {},
    },
  )
  const samir = secure.browser('samir')
  await samir.get(`${secure.url}/.gatehouse/sign-in?return_to=/.gatehouse/sessions`)
  const other = await makeKey(samir, { page: `${secure.url}/.gatehouse/sessions` } as KeyWorld)
  const status = async (headers: Record<string, string>) => {
    const stream = secure.connect().request({ ':path': '/dav/x', ...headers })
    const code = await new Promise((resolve) => stream.once('response', (fields) => resolve(fields[':status'])))
    stream.resume()
    return code
  }
  assert.equal(await status(basic(other)), 200)
  assert.equal(await status(basic(anyKey())), 401)
  assert.match(got.join(), /"x-remote-user":"samir"/)
  assert.ok(!got.join().includes('authorization'))
})
