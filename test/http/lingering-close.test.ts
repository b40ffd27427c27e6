import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { lingerOnClose } from '../../src/http/response.ts'
import { respondingUpstream, startGateway } from '../proxy/support.ts'

test('A client that is still sending when it has its response gets no reset', async (t) => {
  const upstream = await respondingUpstream(t, 'HTTP/1.1 413 Content Too Large\r\nContent-Length: 9\r\n\r\ntoo large')
  const { port, server } = await startGateway(t, upstream)
  server.on('connection', lingerOnClose)
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  t.after(() => socket.destroy())
  let failure: Error | undefined
  socket.on('error', (error) => (failure = error))
  const closed = new Promise((resolve) => socket.once('close', resolve))
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
  socket.write('POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n')

  await once(socket, 'end')
  assert.match(text, /^HTTP\/1\.1 413 [^]*\r\nConnection: close\r\n[^]*\r\n\r\ntoo large$/)
  for (let part = 0; part < 50 && failure === undefined; part += 1) {
    await new Promise((resolve) => socket.write(Buffer.alloc(1000), resolve))
    await nextTurn()
  }
  socket.end()

  await closed
  assert.equal(failure, undefined)
})
