import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { WebSocketServer } from 'ws'
import { type ApiWorld, audience, startApi } from '../support/api-world.ts'
import { startRedis } from '../support/redis.ts'
import { openEventStream, openWebSocket } from '../support/streams.ts'
import { until } from '../support/until.ts'

/** An API with event streams, downloads that never end, and WebSockets. */
async function streamingApplication(t: TestContext): Promise<URL> {
  const server = createServer((req, res) => {
    const type = req.url?.includes('download') ? 'application/octet-stream' : 'text/event-stream'
    res.writeHead(200, { 'content-type': type }).write('data: first\n\n')
  })
  new WebSocketServer({ server }).on('connection', (socket) => socket.send('first'))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
}

async function openAll(t: TestContext, { url }: ApiWorld, token: string) {
  const as = { authorization: `Bearer ${token}` }
  const events = await openEventStream(t, `${url}/api/events`, as)
  const download = await openEventStream(t, `${url}/api/download`, as)
  const socket = await openWebSocket(t, `${url}/api/socket`, as)
  const responses = Promise.all([events.ended, download.ended]).then(() => 'ended')
  return { ended: Promise.all([responses, socket.ended]), responses, closing: socket.closing }
}

const endSession = ({ url, provider }: ApiWorld) =>
  fetch(`${url}/.gatehouse/backchannel-logout`, {
    method: 'POST',
    body: new URLSearchParams({ logout_token: provider.logoutToken() }),
  })

test('A Logout Token ends the open streams of the access tokens of its session, and no others', async (t) => {
  const world = await startApi(t, { application: await streamingApplication(t) })
  const jane = await openAll(t, world, world.token())
  const other = await openAll(t, world, world.token({ sid: 's-2' }))

  assert.equal((await endSession(world)).status, 200)

  // Their connections were closed before that response, and not at the next check.
  await world.send('/.gatehouse/session')
  assert.equal(await Promise.race([jane.responses, Promise.resolve('open')]), 'ended')
  await jane.ended
  assert.equal(await jane.closing, '1008 session ended')
  const closed = await Promise.race([other.closing, Promise.resolve('open')])
  assert.equal(closed, 'open')
})

test('A Logout Token ends the streams of tokens that the provider was asked about', async (t) => {
  const accessTokens = `{ audience: [${audience}], check: introspection }`
  const world = await startApi(t, { application: await streamingApplication(t), accessTokens })
  world.provider.respond('/introspect', (_req, res) =>
    res
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ active: true, aud: audience, sub: 'jane', sid: 's-1', client_id: 'cli' })),
  )
  const jane = await openAll(t, world, 'an-opaque-token')

  assert.equal((await endSession(world)).status, 200)

  await jane.ended
})

test('A Logout Token at one replica ends the streams of tokens at another one', async (t) => {
  const redis = await startRedis(t)
  const store = `{ redis: { url: "${redis.url}" } }`
  const world = await startApi(t, { application: await streamingApplication(t), store })
  const other = await startApi(t, { store, issuer: world.provider })
  const jane = await openAll(t, world, world.token())

  assert.equal((await endSession(other)).status, 200)

  // The check of every five seconds would find it too, so the notice alone is waited for.
  await until('the token is refused', async () => (await world.call('/api/x', world.token())).status === 401)
  await world.send('/.gatehouse/session')
  assert.equal(await Promise.race([jane.responses, Promise.resolve('open')]), 'ended')
})
