// Slow: 3 s, workers start, reload and die
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { type ClientHttp2Session, connect } from 'node:http2'
import { test, type TestContext } from 'node:test'
import { childrenOf, startCommand } from '../support/command.ts'
import { prepareGateway } from '../support/gateway-process.ts'
import { request } from '../support/http2.ts'
import { startRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

/** A gateway of two processes before an application whose responses at `/slow` wait. */
async function start(t: TestContext) {
  const redis = await startRedis(t)
  const around = await prepareGateway(t, {
    store: `{ redis: { url: "${redis.url}" } }`,
    settings: 'workers: 2',
    rules: '[{ path: /*, access: public }]',
  })
  const text = readFileSync(around.file, 'utf8')
  writeFileSync(around.file, text.replace(/^listen: (.*)$/m, 'listen: { address: "$1", h2c: true }'))
  const gateway = startCommand(t, ['run', '--config', around.file], { env: around.env })
  await gateway.said('gatehouse is ready')
  const open = () => {
    const session = connect(around.url).on('error', () => {})
    t.after(() => session.destroy())
    return session
  }
  return { around, gateway, open }
}

const slow = (session: ClientHttp2Session) => request(session, { ':path': '/slow' })

test('With workers, a reload keeps the connections of HTTP/2 and their requests', async (t) => {
  const { around, gateway, open } = await start(t)
  const sessions = Array.from({ length: 4 }, open)
  const waiting = sessions.map(slow)
  await until('the requests wait', () => around.upstream.waiting() === 4)

  const text = readFileSync(around.file, 'utf8')
  writeFileSync(
    around.file,
    text.replace(
      '{ path: /*, access: public }',
      '{ path: /closed, unauthenticated: 401 }, { path: /*, access: public }',
    ),
  )
  gateway.child.kill('SIGHUP')
  await gateway.said('config.reloaded')
  const closed = () =>
    Promise.all(sessions.map(async (session) => (await request(session, { ':path': '/closed' })).status))
  await until('each connection has the new rules', async () => (await closed()).every((status) => status === 401))
  around.upstream.release()

  assert.deepEqual(
    (await Promise.all(waiting)).map(({ status }) => status),
    [200, 200, 200, 200],
  )
})

test('With workers, a stop sends GOAWAY, and requests under way are completed', async (t) => {
  const { around, gateway, open } = await start(t)
  const sessions = Array.from({ length: 4 }, open)
  const waiting = sessions.map(slow)
  await until('the requests wait', () => around.upstream.waiting() === 4)

  const told = Promise.all(sessions.map((session) => once(session, 'goaway')))
  gateway.child.kill('SIGTERM')
  const codes = (await told).map(([code]) => Number(code))
  around.upstream.release()

  assert.deepEqual(codes, [0, 0, 0, 0])
  assert.deepEqual(
    (await Promise.all(waiting)).map(({ status }) => status),
    [200, 200, 200, 200],
  )
  assert.equal(await gateway.ended, 0)
})

test('When a worker is killed, its connections end, and those of the other one are served', async (t) => {
  const { gateway, open } = await start(t)
  // So many that each of the two workers has some.
  const sessions = Array.from({ length: 12 }, open)
  const serves = async (session: ClientHttp2Session) => (await request(session, { ':path': '/' })).status === 200
  await Promise.all(sessions.map(serves))
  const ends = sessions.map((session) => once(session, 'close'))

  process.kill(childrenOf(gateway.pid)[0] as number, 'SIGKILL')
  await Promise.race(ends)
  await gateway.said('worker.died')
  const states = await Promise.all(
    sessions.map((session, at) => Promise.race([serves(session).catch(() => ends[at]), ends[at]])),
  )

  assert.ok(states.includes(true), 'some connections are those of the other worker')
  assert.ok(
    states.some((state) => state !== true),
    'some have ended',
  )
  assert.deepEqual(await Promise.all([open(), open()].map(serves)), [true, true])
})
