import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { httpUpstream, rawUpstream, startGateway } from '../proxy/support.ts'
import { flags, frame, types } from '../support/http2-frames.ts'
import { block, frameServer } from '../transport/http2/frames.ts'

const response = (stream: number) =>
  frame(types.headers, flags.endHeaders | flags.endStream, stream, block([[':status', '200']]))

for (const protocol of ['http1', 'h2c'] as const)
  test(`A GET whose connections break at each target is sent twice in all, with ${protocol}`, async (t) => {
    let isBroken = false
    const sent: string[] = []
    const onRequest = (name: string, socket: Socket, reply: string | Buffer) => {
      if (!isBroken) return socket.write(reply)
      sent.push(name)
      return socket.destroy()
    }
    const start = async (name: string) =>
      protocol === 'http1'
        ? rawUpstream(t, (socket) => onRequest(name, socket, 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'))
        : (await frameServer(t, (socket, stream) => onRequest(name, socket, response(stream)))).port
    const ports = [await start('first'), await start('second')]
    const { origin } = await startGateway(t, 1, { upstream: { targets: ports.map(target), protocol } })
    // Both have a connection now that may be used again.
    for (const _ of ports) assert.equal((await fetch(origin)).status, 200)

    isBroken = true

    assert.equal((await fetch(origin)).status, 502)
    assert.deepEqual(sent, ['first', 'first'])
  })

test('A GET that a target may have carried out before it stopped is sent to another target once', async (t) => {
  let isBroken = false
  const sent: string[] = []
  const first = await httpUpstream(t, (req, res) => {
    if (!isBroken) return res.end()
    sent.push('first')
    first.server.close()
    return req.socket.destroy()
  })
  const second = await rawUpstream(t, (socket) => {
    if (!isBroken) return void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
    sent.push('second')
    socket.destroy()
  })
  const { origin } = await startGateway(t, 1, { upstream: { targets: [first.port, second].map(target) } })
  for (const _ of 'ab') assert.equal((await fetch(origin)).status, 200)

  isBroken = true

  assert.equal((await fetch(origin)).status, 502)
  assert.deepEqual(sent, ['first', 'second'])
})

const target = (port: number) => ({
  ...{ url: new URL(`http://127.0.0.1:${port}`), socketPath: undefined, weight: 1, backup: false },
})
