import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { childrenOf, startCommand } from '../support/command.ts'
import { prepareGateway } from '../support/gateway-process.ts'
import { startRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

test('A connection that was passed to a worker that died is closed, so that its client tries again', async (t) => {
  const redis = await startRedis(t)
  const { url, file, env } = await prepareGateway(t, {
    store: `{ redis: { url: "${redis.url}" } }`,
    settings: 'workers: 2',
  })
  const gateway = startCommand(t, ['run', '--config', file], { env })
  await gateway.said('gatehouse is ready')
  const [hanging = 0] = childrenOf(gateway.pid)
  process.kill(hanging, 'SIGSTOP')

  const { port, host } = new URL(url)
  const outcomes: string[] = []
  const clients = Array.from({ length: 6 }, () => {
    const socket = connect(Number(port), '127.0.0.1')
    t.after(() => socket.destroy())
    socket.on('error', () => {}).once('data', () => outcomes.push('served'))
    socket.once('close', () => outcomes.push('closed'))
    socket.write(`GET /static/x HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
    return socket
  })
  await until('all connections but one are served by the other worker', () => outcomes.length === clients.length - 1)
  assert.deepEqual(new Set(outcomes), new Set(['served']))

  process.kill(hanging, 'SIGKILL')

  await until('the last connection is closed', () => outcomes.includes('closed'))
})
