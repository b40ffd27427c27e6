import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gatehouse, startCommand } from '../support/command.ts'
import { prepareGateway } from '../support/gateway-process.ts'
import { startWithKeptSocket } from '../support/kept-socket.ts'

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
