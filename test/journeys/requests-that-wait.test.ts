import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request as plainRequest, type Server, type ServerResponse } from 'node:http'
import { test, type TestContext } from 'node:test'
import { startApi } from '../support/api-world.ts'
import { decide, startDecisionPoint } from '../support/decision-point.ts'
import { goOn, press, submit } from '../support/form-browser.ts'
import { request, startHttp2World } from '../support/http2.ts'
import { basic, makeKey, signedIn, startKeyWorld } from '../support/key-world.ts'
import { readMetrics } from '../support/metrics.ts'
import { startRecordingApplication } from '../support/recording-application.ts'
import { press as pressButton } from '../support/session-page.ts'
import { until } from '../support/until.ts'
import type { World } from '../support/world.ts'

// A session ends while a request of it waits: what arrives in other ways than the usual one.

/** Ends all sessions of Jane by Logout Tokens. */
async function endSessions({ provider, postLogoutToken }: World): Promise<void> {
  for (const { sid, sub } of provider.sessions().filter(({ sub }) => sub === 'jane')) {
    const logout_token = await provider.logoutToken({ sid, sub })
    assert.equal((await postLogoutToken({ logout_token })).status, 200)
  }
}

/**
 * A policy decision point that permits everything. `hold` makes its next response wait.
 */
async function startHoldingPoint(t: TestContext) {
  const point = await startDecisionPoint(t)
  const permit = decide({ decision: true })
  const hold = () => {
    const held = Promise.withResolvers<() => void>()
    point.answer = (...asked) => {
      point.answer = permit
      held.resolve(() => permit(...asked))
    }
    return held.promise
  }
  return { settings: `authorize_with: { url: "${point.url}", timeout: 10s }`, hold }
}

/** A gateway for both versions of HTTP, before an application that records what it gets. */
async function start(t: TestContext, rules = '') {
  const point = await startHoldingPoint(t)
  const seen: string[] = []
  const slow = Promise.withResolvers<ServerResponse>()
  const handler = (req: IncomingMessage, res: ServerResponse) => {
    seen.push(`${req.method} ${req.url} ${req.headers['x-remote-user'] ?? 'anybody'}`)
    if (req.url === '/slow') slow.resolve(res)
    else req.resume().once('end', () => res.end('ok'))
  }
  const world = await startHttp2World(t, handler, {
    h2c: true,
    settings: 'admin: { listen: 127.0.0.1:0 }',
    upstreamSettings: `${point.settings}
    rules: [{ path: /public/*, access: public }, { path: /open/*, access: optional }]
    max_connections: 1
    ${rules}`,
    onUpstream: (server: Server) =>
      server.on('upgrade', (req, socket) => {
        seen.push(`upgrade ${req.url}`)
        socket.destroy()
      }),
  })
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  seen.length = 0
  return { world, seen, jane, slow, hold: point.hold }
}

type Started = Awaited<ReturnType<typeof start>>

/** The next request of another person gets its response: no place is taken. */
async function serves({ world, seen }: Pick<Started, 'world' | 'seen'>): Promise<void> {
  assert.equal((await world.browser('noa').get(`${world.url}/after`)).status, 200)
  assert.equal(seen.at(-1), 'GET /after noa')
}

for (const [what, headers, content] of [
  ['a request', { ':path': '/page' }, undefined],
  ['a request with content', { ':path': '/page', ':method': 'POST' }, 'x'.repeat(100_000)],
  ['a path that is open to anybody', { ':path': '/open/page' }, undefined],
] as const)
  test(`Over HTTP/2, ${what} whose session ends during the decision gets 401`, async (t) => {
    const started = await start(t)
    const { world, seen, jane, hold } = started
    const connection = world.connect()
    const held = hold()
    const response = request(connection, { ...headers, cookie: jane.cookieHeader }, content)
    const permit = await held
    await endSessions(world)

    permit()

    assert.equal((await response).status, 401)
    assert.deepEqual(seen, [])
    assert.equal((await request(connection, { ':path': '/public/page' })).status, 200)
    seen.length = 0
    await serves(started)
  })

test('A WebSocket whose session ends during the decision gets 401, and the application nothing', async (t) => {
  const started = await start(t)
  const { world, seen, jane, hold } = started
  const held = hold()
  const handshake = plainRequest(`${world.url}/socket`, {
    headers: {
      ...{ connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' },
      ...{ 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==', cookie: jane.cookieHeader, origin: world.url },
    },
  })
  handshake.end()
  const answer = once(handshake, 'response')
  const permit = await held
  await endSessions(world)

  permit()

  const [response] = (await answer) as [IncomingMessage]
  assert.equal(response.statusCode, 401)
  await once(response.resume(), 'close')
  assert.deepEqual(seen, [])
  await serves(started)
})

test('A WebSocket over HTTP/2 whose session ends during the decision gets 401, and the application nothing', async (t) => {
  const started = await start(t)
  const { world, seen, jane, hold } = started
  const connection = world.connect()
  await once(connection, 'remoteSettings')
  const held = hold()
  const stream = connection.request(
    {
      ':method': 'CONNECT',
      ':protocol': 'websocket',
      ':path': '/socket',
      cookie: jane.cookieHeader,
      origin: world.url,
    },
    { endStream: false },
  )
  const answer = once(stream, 'response')
  const permit = await held
  await endSessions(world)

  permit()

  const [fields] = (await answer) as [Record<string, unknown>]
  assert.equal(fields[':status'], 401)
  stream.resume()
  await once(stream, 'close')
  assert.deepEqual(seen, [])
  await serves(started)
})

test('A kept form whose session ends during the decision stays kept, and is sent after the next sign-in', async (t) => {
  const started = await start(t)
  const { world, seen, jane, hold } = started
  await endSessions(world)
  const page = await goOn(jane, await submit(jane, world.url))
  seen.length = 0
  const held = hold()
  const sending = press(jane, page, 'Send now')
  const permit = await held
  await endSessions(world)

  permit()

  const sent = await sending
  assert.deepEqual(seen, [])
  const again = await goOn(jane, sent)
  assert.equal((await press(jane, again, 'Send now')).status, 200)
  assert.deepEqual(seen, ['POST /orders?new=1 jane'])
  await serves(started)
})

for (const how of ['by its person', 'by its time'])
  test(`A key that ends ${how} during the decision is refused, and the application gets nothing`, async (t) => {
    const point = await startHoldingPoint(t)
    const { url: upstream, seen } = await startRecordingApplication(t)
    const world = await startKeyWorld(t, {
      upstream,
      upstreamSettings: `keys: { for_at_most: 90d, idle: 30d, header: X-Api-Key }
    rules: [{ path: /api/*, keys: true }]
    ${point.settings}`,
    })
    const jane = await signedIn(world)
    const key = await makeKey(jane, world)
    seen.length = 0
    const held = point.hold()
    const response = fetch(`${world.url}/api/page`, { headers: basic(key) })
    const permit = await held
    if (how === 'by its time') world.moveClock(91 * 24 * 60 * 60_000)
    else await pressButton(jane, await jane.get(world.page), /^End the key/)

    permit()

    assert.equal((await response).status, 401)
    assert.deepEqual(seen, [])
  })

test('An access token whose session ends during the decision is refused, and the application gets nothing', async (t) => {
  const point = await startHoldingPoint(t)
  const world = await startApi(t, { upstream: point.settings })
  const held = point.hold()
  const response = world.call('/api/page', world.token())
  const permit = await held
  const body = new URLSearchParams({ logout_token: world.provider.logoutToken() })
  assert.equal((await fetch(`${world.url}/.gatehouse/backchannel-logout`, { method: 'POST', body })).status, 200)

  permit()

  assert.equal((await response).status, 401)
  assert.deepEqual(world.seen, [])
  assert.equal((await world.call('/api/page', world.token({ sid: 's-2' }))).status, 200)
})

test('An access token that expires during the decision is refused, and the application gets nothing', async (t) => {
  const point = await startHoldingPoint(t)
  const world = await startApi(t, { upstream: point.settings })
  const held = point.hold()
  const response = world.call('/api/page', world.token())
  const permit = await held
  world.move(300_000)

  permit()

  assert.equal((await response).status, 401)
  assert.deepEqual(world.seen, [])
})

/** Another person uses the only connection to the application. */
async function takeConnection({ world, slow }: Started): Promise<() => Promise<void>> {
  const noa = world.browser('noa')
  await noa.get(`${world.url}/`)
  const busy = noa.send(`${world.url}/slow`)
  const res = await slow.promise
  return async () => {
    res.end('slow')
    assert.equal((await busy).body, 'slow')
  }
}

/** Resolves when one request waits for a connection. */
const waits = (world: World) =>
  until('a request waits for a connection', async () => {
    const metrics = await readMetrics(`http://127.0.0.1:${world.replicas[0]?.gateway.adminAddress?.port}`)
    return metrics.value('gatehouse_upstream_waiting_requests{upstream="orders"}') === 1
  })

test('A request that waits for a connection gets 401 when its session ends, and gives its place back', async (t) => {
  const started = await start(t)
  const { world, seen, jane } = started
  const giveBack = await takeConnection(started)
  seen.length = 0
  const response = request(world.connect(), { ':path': '/page', cookie: jane.cookieHeader })
  await waits(world)

  await endSessions(world)

  assert.equal((await response).status, 401)
  await giveBack()
  assert.deepEqual(seen, [])
  await serves(started)
})

test('A kept form that waits for a connection when its session ends is sent after the next sign-in', async (t) => {
  const started = await start(t)
  const { world, seen, jane } = started
  await endSessions(world)
  const page = await goOn(jane, await submit(jane, world.url))
  const giveBack = await takeConnection(started)
  seen.length = 0
  const sending = press(jane, page, 'Send now')
  await waits(world)
  await endSessions(world)

  assert.equal((await sending).status, 401)
  await giveBack()
  assert.deepEqual(seen, [])
  const again = await goOn(jane, await jane.send(page.url))
  assert.equal((await press(jane, again, 'Send now')).status, 200)
  assert.deepEqual(seen, ['POST /orders?new=1 jane'])
})

test('An upload over HTTP/2 ends with its session, and other requests of the connection do not', async (t) => {
  const started = await start(t)
  const { world, seen, jane } = started
  const connection = world.connect()
  const upload = connection.request({ ':method': 'POST', ':path': '/upload', cookie: jane.cookieHeader })
  upload.on('error', () => {}).write('the beginning')
  await until('the application gets the request', () => seen.length === 1)
  const answer = once(upload, 'response')
  const close = once(upload, 'close')

  await endSessions(world)

  const [fields] = (await answer) as [Record<string, unknown>]
  assert.equal(fields[':status'], 401)
  upload.resume()
  await close
  assert.equal((await request(connection, { ':path': '/public/page' })).status, 200)
  await serves(started)
})
