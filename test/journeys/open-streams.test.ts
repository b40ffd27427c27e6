import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, createServer, request, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { WebSocketServer } from 'ws'
import { replacePauses } from '../support/pauses.ts'
import { openEventStream, openWebSocket } from '../support/streams.ts'
import { until } from '../support/until.ts'
import { startWorld, type Replica } from '../support/world.ts'

const minute = 60_000

/**
 * An application with all kinds of long exchanges: `/ws`, `/events`, `/download` and `/upload`.
 * `/slow` responds on demand.
 */
async function lastingUpstream(t: TestContext) {
  const held: ServerResponse[] = []
  let uploaded = 0
  const server = createServer((req, res) => {
    if (/events$/.test(req.url ?? ''))
      res.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: first\n\n')
    else if (req.url === '/download') res.writeHead(200, { 'content-length': 1_000_000 }).write('the beginning')
    else if (req.url === '/upload') req.on('data', (chunk: Buffer) => (uploaded += chunk.length))
    else if (req.url === '/slow') held.push(res)
    else res.end(`for ${req.headers['x-remote-user'] ?? 'anybody'}`)
  })
  const sockets = new WebSocketServer({ server })
  const closings: Promise<string>[] = []
  sockets.on('connection', (socket) => {
    closings.push(new Promise((resolve) => socket.once('close', (code) => resolve(String(code)))))
    socket.send('first')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return {
    url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    uploaded: () => uploaded,
    waiting: () => held.length,
    release: () => held.splice(0).forEach((res) => res.end('at last')),
    /** The end of each WebSocket. */
    closings,
  }
}

/** An exchange that breaks off. Resolves to the way in which it ended. */
function brokenOff(t: TestContext, url: string, method: string, cookie: string) {
  const sent = request(url, { method, headers: { cookie }, agent: false })
  t.after(() => sent.destroy())
  let response: IncomingMessage | undefined
  sent.once('response', (res) => (response = res.resume()))
  const how = new Promise<string>((resolve) => {
    // The connection is closed for all that the client sends after the response.
    sent.on('error', () => {})
    sent.once('close', () => resolve(response?.complete === false ? 'broken off' : `whole: ${response?.statusCode}`))
  })
  if (method === 'POST') sent.write('the beginning')
  else sent.end()
  return { how, hasResponse: () => response !== undefined }
}

test('All open responses of a session end with it, on every replica, and none looks complete', async (t) => {
  const upstream = await lastingUpstream(t)
  const world = await startWorld(t, { store: 'redis', replicas: 2, upstream: upstream.url })
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  const [session] = world.provider.sessions()
  const open = async ({ url }: Replica) => ({
    socket: await openWebSocket(t, `${url}/ws`, jane.cookieHeader),
    events: brokenOff(t, `${url}/events`, 'GET', jane.cookieHeader),
    download: brokenOff(t, `${url}/download`, 'GET', jane.cookieHeader),
    upload: brokenOff(t, `${url}/upload`, 'POST', jane.cookieHeader),
  })
  const streams = await Promise.all(world.replicas.map(open))
  await until('all have begun', () => {
    const begun = streams.every(({ events, download }) => events.hasResponse() && download.hasResponse())
    return begun && upstream.uploaded() === 2 * 'the beginning'.length
  })

  await world.provider.endSession(session?.sid ?? '')

  for (const { socket, events, download, upload } of streams) {
    assert.equal(await socket.closing, '1008 session ended')
    assert.equal(await events.how, 'broken off')
    assert.equal(await download.how, 'broken off')
    assert.equal(await upload.how, 'whole: 401')
  }
  assert.deepEqual(await Promise.all(upstream.closings), ['1001', '1001'])
})

test('An idle connection of a client whose session has ended carries no further request of that session', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  const [session] = world.provider.sessions()
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.after(() => agent.destroy())
  const ask = async () => {
    const sent = request(`${world.url}/echo`, { agent, headers: { cookie: jane.cookieHeader } }).end()
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    await response.resume().toArray()
    return { status: response.statusCode, isSameConnection: sent.reusedSocket }
  }
  assert.deepEqual(await ask(), { status: 200, isSameConnection: false })

  await world.provider.endSession(session?.sid ?? '')

  assert.deepEqual(await ask(), { status: 401, isSameConnection: true })
})

test('Streams end when their session expires', { concurrency: true }, async (t) => {
  replacePauses(t, { checkStreamsMs: 50 })
  const cases = [
    ['when it was idle for too long', 'idle_timeout: 30m', [31]],
    ['when it has reached absolute_timeout, although it was in use', 'absolute_timeout: 40m', [25, 16]],
  ] as const
  await Promise.all(
    cases.map(([when, setting, pauses]) =>
      t.test(when, async (t) => {
        const world = await startWorld(t, { session: setting })
        const jane = world.browser()
        await jane.get(`${world.url}/echo`)
        const events = await openEventStream(t, `${world.url}/events`, jane.cookieHeader)
        const socket = await openWebSocket(t, `${world.url}/ws`, jane.cookieHeader)

        for (const minutes of pauses) {
          await jane.fetch(`${world.url}/echo`)
          world.moveClock(minutes * minute)
        }

        await events.ended
        assert.equal(await socket.closing, '1008 session ended')
      }),
    ),
  )
})

test('Streams end with sessions that are lost together with Redis', async (t) => {
  const world = await startWorld(t, { store: 'redis' })
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  const events = await openEventStream(t, `${world.url}/events`, jane.cookieHeader)

  await world.redis?.restart()

  await events.ended
  await until('the session is gone', async () => (await jane.fetch(`${world.url}/echo`)).status === 401)
})

test('At a stop, all WebSockets and event streams end at once, and other requests have time to finish', async (t) => {
  const upstream = await lastingUpstream(t)
  const world = await startWorld(t, { upstream: upstream.url })
  const [replica] = world.replicas as [Replica]
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  const sockets = [
    await openWebSocket(t, `${world.url}/ws`, jane.cookieHeader),
    await openWebSocket(t, `${world.url}/static/ws`, ''),
  ]
  const events = [
    await openEventStream(t, `${world.url}/events`, jane.cookieHeader),
    await openEventStream(t, `${world.url}/static/events`, ''),
  ]
  const slow = jane.fetch(`${world.url}/slow`)
  await until('the request is under way', () => upstream.waiting() === 1)

  const stopped = replica.stop()

  for (const { closing } of sockets) assert.equal(await closing, '1001 going away')
  for (const { ended } of events) await ended
  assert.deepEqual(await Promise.all(upstream.closings), ['1001', '1001'])
  upstream.release()
  assert.equal((await slow).body, 'at last')
  await stopped
})

test('An event stream that begins during a stop does not delay the stop', async (t) => {
  const held: ServerResponse[] = []
  const server = createServer((_, res) => void held.push(res)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const world = await startWorld(t, {
    upstream: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    drain: '60s',
  })
  const [replica] = world.replicas as [Replica]
  const events = brokenOff(t, `${world.url}/static/events`, 'GET', '')
  await until('the request is under way', () => held.length === 1)

  const stoppedAt = performance.now()
  const stopped = replica.stop()
  held[0]?.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: first\n\n')

  assert.equal(await events.how, 'broken off')
  await stopped
  // Otherwise it would have waited for the time limit of a request.
  assert.ok(performance.now() - stoppedAt < 30_000)
})
