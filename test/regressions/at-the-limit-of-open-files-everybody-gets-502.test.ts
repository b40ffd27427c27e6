import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { startCommand } from '../support/command.ts'
import { prepareGateway } from '../support/gateway-process.ts'
import { until } from '../support/until.ts'

test('At the limit of open files, new connections are rejected, and requests in progress get their responses', async (t) => {
  const { url, upstream, file, env, provider } = await prepareGateway(t, {
    rules: '[{ path: /*, access: public }]',
    settings: 'limits: { connections: 10000 }',
  })
  const gatehouse = [process.execPath, 'dist/main.js', 'run', '--config', file].join("' '")
  const gateway = startCommand(t, ['-c', `ulimit -n 256; exec '${gatehouse}'`], { program: ['sh'], env })
  await gateway.said('gatehouse is ready')
  const lowered = await gateway.said('limits.connections_lowered')
  assert.deepEqual([lowered['lowered_to'], lowered['open_files']], [96, 256])

  const { port, host } = new URL(url)
  const responses: string[] = []
  let closed = 0
  const client = (path: string): Socket => {
    const socket = connect(Number(port), '127.0.0.1')
    t.after(() => socket.destroy())
    socket.on('error', () => {}).on('data', (chunk) => responses.push(chunk.toString().slice(0, 12)))
    socket.once('close', () => (closed += 1))
    socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
    return socket
  }
  const slow = Array.from({ length: 90 }, () => client('/slow'))
  await until('slow requests wait at the application', () => upstream.waiting() === 90)
  for (let more = 0; more < 300; more += 1) client('/slow')
  await until('further connections are refused', () => closed >= 290)
  assert.deepEqual(responses, [])

  upstream.release()
  await until('all that was accepted has its response', () => responses.length >= 90)
  assert.deepEqual(new Set(responses), new Set(['HTTP/1.1 200']))
  // Idle connections are closed for new ones, also for a Logout Token.
  const logout_token = await provider.logoutToken({ sid: 'unknown', sub: 'jane' })
  await until('a Logout Token is accepted', async () => {
    const body = new URLSearchParams({ logout_token })
    const sent = fetch(`${url}/.gatehouse/backchannel-logout`, { method: 'POST', body })
    return sent.then(
      ({ status }) => status === 200,
      () => false,
    )
  })
  for (const socket of slow) if (!socket.destroyed) await once(socket.destroy(), 'close')
  assert.deepEqual(
    gateway.log().filter(({ code }) => code === 'ERR_UPSTREAM_UNREACHABLE'),
    [],
  )
})
