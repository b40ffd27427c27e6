import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { Agent } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { WebSocket, WebSocketServer } from 'ws'
import { gatehouse, root, startCommand } from '../support/command.ts'
import { prepareGateway, type Surroundings } from '../support/gateway-process.ts'
import { startLoad } from '../support/load.ts'
import { startRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

/** Starts the gateway with a socket that stays open over its restarts. */
function startWithKeptSocket(t: TestContext, { url, file, env }: Surroundings) {
  const holder = join(root, 'test', 'support', 'socket-holder.pl')
  // Before the command is killed: it would leave the gateway behind.
  t.after(async () => {
    command.child.kill('SIGTERM')
    await command.ended
  })
  const command = startCommand(t, [new URL(url).port, ...gatehouse, 'run', '--config', file], {
    program: ['perl', holder],
    env,
  })
  return command
}

for (const workers of [1, 2])
  test(`A restart with a kept socket loses no request (workers: ${workers})`, async (t) => {
    const redis = await startRedis(t)
    const around = await prepareGateway(t, {
      store: `{ redis: { url: "${redis.url}" } }`,
      settings: `workers: ${workers}`,
      rules: '[{ path: /*, access: public }]',
    })
    const gateway = startWithKeptSocket(t, around)
    await gateway.said('gatehouse is ready')
    const loads = [true, false].map((keepAlive) => startLoad(t, `${around.url}/`, new Agent({ keepAlive })))
    const served = () => loads.map((load) => load.served())

    for (let restart = 2; restart <= 4; restart += 1) {
      const before = served()
      await until('requests are served', () => served().every((count, index) => count > (before[index] ?? 0) + 20))
      gateway.child.kill('SIGHUP')
      const starts = () => gateway.log().filter(({ msg }) => msg === 'gatehouse is ready').length
      await until('the gateway has started again', () => starts() === restart)
    }
    const before = served()
    await until('requests are served', () => served().every((count, index) => count > (before[index] ?? 0) + 20))

    for (const load of loads) assert.deepEqual(await load.stop(), ['200'])
    gateway.child.kill('SIGTERM')
    assert.equal(await gateway.ended, 0)
  })

test('A restart tells a WebSocket to connect again, and the next process accepts it', async (t) => {
  const application = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  t.after(() => application.close())
  await once(application, 'listening')
  const { port } = application.address() as AddressInfo
  const around = await prepareGateway(t, { rules: '[{ path: /*, access: public }]' })
  writeFileSync(around.file, readFileSync(around.file, 'utf8').replace(around.upstream.url, `http://127.0.0.1:${port}`))
  const gateway = startWithKeptSocket(t, around)
  await gateway.said('gatehouse is ready')
  const connect = async () => {
    const socket = new WebSocket(around.url.replace('http', 'ws'))
    t.after(() => socket.terminate())
    await once(socket, 'open')
    return socket
  }
  const socket = await connect()

  gateway.child.kill('SIGHUP')
  const [code] = (await once(socket, 'close')) as [number]
  await connect()

  assert.equal(code, 1001)
})

test('A socket with another address than `listen` is an error that names both', async (t) => {
  const around = await prepareGateway(t)
  const other = await prepareGateway(t)
  const gateway = startWithKeptSocket(t, { ...around, url: other.url })

  assert.equal(await gateway.ended, 1)
  const [port, given] = [new URL(around.url).port, new URL(other.url).port]
  assert.match(
    gateway.err(),
    new RegExp(`listen is 127\\.0\\.0\\.1:${port}, but the socket of systemd is 127\\.0\\.0\\.1:${given}`),
  )
})

test('A descriptor that is not a stream socket is an error that says what to write', async (t) => {
  const { file, env } = await prepareGateway(t)
  const gateway = startCommand(t, ['sh', ...gatehouse, 'run', '--config', file], {
    program: ['sh', '-c', 'LISTEN_PID=$$ LISTEN_FDS=1 exec "$@" 3</dev/null'],
    env,
  })

  assert.equal(await gateway.ended, 1)
  assert.match(gateway.err(), /descriptor 3 of systemd is not a stream socket: write ListenStream in the socket unit/)
  assert.doesNotMatch(gateway.err(), /TypeError/)
})
