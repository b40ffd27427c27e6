// Slow: 10 s, processes restart under load
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { Agent } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { WebSocket, WebSocketServer } from 'ws'
import { prepareGateway } from '../support/gateway-process.ts'
import { startWithKeptSocket } from '../support/kept-socket.ts'
import { startLoad } from '../support/load.ts'
import { startRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

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
