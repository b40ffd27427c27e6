import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import type { Touch } from '../../chaos/history.ts'
import { Network } from '../../chaos/network.ts'
import { Touches } from '../../chaos/touches.ts'
import { freePort } from '../support/free-port.ts'
import { until } from '../support/until.ts'

/** A connection of replica a to a node of Redis, through the proxy. */
async function startLink(t: TestContext) {
  const touches: Touch[] = []
  const merged = new Touches((touch) => touches.push(touch))
  const network = new Network(merged)
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const port = await freePort()
  await network.link('redis-1', port, (server.address() as { port: number }).port)
  const client = connect({ host: network.host('redis-1'), port, localAddress: network.host('a') })
  client.on('error', () => {})
  const [[far]] = (await Promise.all([once(server, 'connection'), once(client, 'connect')])) as [[Socket], unknown]
  far.on('error', () => {})
  t.after(() => {
    network.close()
    server.close()
    client.destroy()
  })
  const seen = () => {
    merged.settleBefore(Infinity)
    return touches.map(({ from, to, part, how, code }) => [from, to, part, how, ...(code === undefined ? [] : [code])])
  }
  return { network, client, far, seen }
}

const isSeen = (seen: () => string[][], how: string) => until(how, () => seen().some((touch) => touch.includes(how)))

test('a proxy sees nothing wrong where a replica closes a connection that works', async (t) => {
  const { client, far, seen } = await startLink(t)
  client.write('PING\r\n')
  await once(far, 'data')
  far.write('+PONG\r\n')
  await once(client, 'data')
  client.end()
  await once(far.resume(), 'end')
  far.end()
  await once(client.resume(), 'close')

  assert.deepEqual(seen(), [])
})

test('a proxy sees that a node of Redis closes a connection', async (t) => {
  const { far, seen } = await startLink(t)
  far.end()

  await isSeen(seen, 'closed')
  assert.deepEqual(seen(), [['a', 'redis-1', 'store', 'closed']])
})

for (const [error, code] of [
  ['-READONLY You can not write against a read only replica.\r\n', 'READONLY'],
  ['$1\r\nx\r\n-NOREPLICAS Not enough good replicas to write.\r\n', 'NOREPLICAS'],
] as const)
  test(`a proxy sees the error ${code} of Redis`, async (t) => {
    const { client, far, seen } = await startLink(t)
    far.write(error)
    await once(client, 'data')

    assert.deepEqual(seen(), [['a', 'redis-1', 'store', 'error', code]])
  })

test('a proxy sees that fewer replicas of Redis acknowledge than a replica has asked for', async (t) => {
  const { client, far, seen } = await startLink(t)
  client.write('*3\r\n$4\r\nwait\r\n$1\r\n1\r\n$3\r\n100\r\n')
  await once(far, 'data')
  far.write(':0\r\n')
  await once(client, 'data')

  assert.ok(seen().some((touch) => touch.includes('WAIT')))
})

test('a proxy sees that it resets a connection, and who had it', async (t) => {
  const { network, seen } = await startLink(t)
  network.trouble({ between: ['a', 'redis-1'], how: 'reset' })

  assert.deepEqual(seen(), [['a', 'redis-1', 'store', 'reset']])
})

test('a fault of a link that nobody uses touches nothing', async (t) => {
  const { network, seen } = await startLink(t)
  network.trouble({ between: ['b', 'redis-1'], how: 'reset' })()

  assert.deepEqual(seen(), [])
})

test('a proxy sees since when it has held bytes back', async (t) => {
  const { network, client, far, seen } = await startLink(t)
  const heal = network.trouble({ between: ['a', 'redis-1'], how: { delayMs: 60, loss: 0 } })
  client.write('PING\r\n')
  await once(far, 'data')
  heal()

  assert.deepEqual(seen(), [['a', 'redis-1', 'store', 'held']])
})
