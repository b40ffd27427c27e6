// Slow: 4 s, workers die under load
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test, type TestContext } from 'node:test'
import { childrenOf, startCommand } from '../support/command.ts'
import { prepareGateway } from '../support/gateway-process.ts'
import { startRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

test('A connection that was passed to a worker that hangs and then dies is served by another worker', async (t) => {
  const { workers, clients } = await startTwoWorkers(t)
  process.kill(workers[0], 'SIGSTOP')
  const outcomes = clients(6)
  await until('all connections but one are served by the other worker', () => outcomes.length === 5)
  assert.deepEqual(new Set(outcomes), new Set(['served']))

  process.kill(workers[0], 'SIGKILL')

  await until('the last connection has an outcome', () => outcomes.length === 6)
  assert.deepEqual(new Set(outcomes), new Set(['served']))
})

test('Connections that arrive while a worker dies are served by the other worker', async (t) => {
  const { gateway, workers, clients } = await startTwoWorkers(t)
  // The primary process learns of the connections first, and of the death afterwards.
  process.kill(gateway.pid, 'SIGSTOP')
  const outcomes = clients(6)
  await outcomes.connected
  process.kill(workers[0], 'SIGKILL')
  process.kill(gateway.pid, 'SIGCONT')

  await until('all connections have an outcome', () => outcomes.length === 6)
  assert.deepEqual(new Set(outcomes), new Set(['served']))
  await gateway.said('worker.died')
  assert.equal(gateway.child.exitCode, null, 'the primary process continues')
})

test('A connection is closed when the last worker dies, so that its client tries again', async (t) => {
  const { workers, clients } = await startTwoWorkers(t)
  for (const pid of workers) process.kill(pid, 'SIGSTOP')
  const outcomes = clients(2)
  await outcomes.connected

  for (const pid of workers) process.kill(pid, 'SIGKILL')

  await until('both connections have an outcome', () => outcomes.length === 2)
  assert.deepEqual(new Set(outcomes), new Set(['closed']))
})

test('A connection to a worker that dies while the other worker stops is closed', async (t) => {
  const { gateway, workers, clients, upstream, url } = await startTwoWorkers(t)
  process.kill(workers[0], 'SIGSTOP')
  const outcomes = clients(2)
  await until('the other worker serves a connection', () => outcomes.length === 1)
  const slow = fetch(`${url}/static/slow`)
  await until('the other worker has a request', () => upstream.waiting() === 1)
  gateway.child.kill('SIGTERM')
  await until('the other worker closes the connections that it does not need', () => outcomes.closed() === 1)

  process.kill(workers[0], 'SIGKILL')

  await until('the connection has an outcome', () => outcomes.length === 2)
  assert.deepEqual([...outcomes], ['served', 'closed'])
  upstream.release()
  assert.equal((await slow).status, 200)
})

async function startTwoWorkers(t: TestContext) {
  const redis = await startRedis(t)
  const { url, file, env, upstream } = await prepareGateway(t, {
    store: `{ redis: { url: "${redis.url}" } }`,
    settings: 'workers: 2\nshutdown: { drain_timeout: 60s }',
  })
  const gateway = startCommand(t, ['run', '--config', file], { env })
  await gateway.said('gatehouse is ready')
  const { port, host } = new URL(url)
  /** Each connection sends a request. Its first outcome is in the result. */
  const clients = (count: number) => {
    const outcomes: string[] = []
    let closed = 0
    const connected = Array.from({ length: count }, () => {
      const socket = connect(Number(port), '127.0.0.1')
      t.after(() => socket.destroy())
      let outcome: string | undefined
      const note = (what: string) => outcome ?? outcomes.push((outcome = what))
      socket.on('error', () => {}).once('data', () => note('served'))
      socket.once('close', () => {
        closed += 1
        note('closed')
      })
      socket.write(`GET /static/x HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
      return new Promise<void>((resolve) => socket.once('connect', () => resolve()))
    })
    return Object.assign(outcomes, { connected: Promise.all(connected), closed: () => closed })
  }
  return { gateway, workers: childrenOf(gateway.pid) as [number, number], clients, upstream, url }
}
