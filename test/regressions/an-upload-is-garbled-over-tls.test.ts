import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { test } from 'node:test'
import { connect } from 'node:tls'
import { ReusedReads } from '../../src/wire/read-buffers.ts'
import { httpUpstream } from '../proxy/support.ts'
import { issueCertificates } from '../support/certificates.ts'
import { statusesIn } from '../support/raw-exchange.ts'
import { startWorld } from '../support/world.ts'

const hashOf = (content: string) => createHash('sha256').update(content).digest('hex')
/** It arrives in several TLS records at once. */
const content = Array.from({ length: 60_000 }, (_, at) => String(at)).join()
const get = 'GET / HTTP/1.1\r\nHost: h\r\n\r\n'
const head = 'PUT / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n'
const chunked = `${head}${content.length.toString(16)}\r\n${content}\r\n0\r\n\r\n`

for (const memory of ['memory that is used again', 'memory of Node.js'])
  test(`Content of a request that Node.js reads arrives unchanged over TLS, read into ${memory}`, async (t) => {
    // As with a version of Node.js that lacks the private parts.
    if (memory === 'memory of Node.js') t.mock.method(ReusedReads, 'begin', () => undefined)
    const { port } = await httpUpstream(t, async (req, res) => {
      let received = ''
      for await (const part of req) received += String(part)
      res.end(`[${hashOf(received)}]`)
    })
    const { server } = issueCertificates()
    const world = await startWorld(t, {
      upstream: new URL(`http://127.0.0.1:${port}`),
      upstreamSettings: 'rules: [{ path: /*, access: public }]',
      listen: (address) => `{ address: "${address}", tls: { cert_file: ${server.cert}, key_file: ${server.key} } }`,
    })
    const address = { port: Number(new URL(world.url).port), host: '127.0.0.1', rejectUnauthorized: false }

    for (const [before, waits] of [
      ['', false],
      [get, true],
      [get, false],
      [get.repeat(100), false],
    ] as const)
      await t.test(`${waits ? 'after' : 'behind'} ${before.length / get.length} plain requests`, async (t) => {
        const socket = connect(address)
        t.after(() => socket.destroy())
        let text = ''
        socket.on('data', (part: Buffer) => (text += part.toString('latin1')))
        if (waits) {
          socket.write(before)
          await once(socket, 'data')
        }
        socket.write(waits ? chunked : before + chunked)
        await once(socket, 'close')
        assert.deepEqual(new Set(statusesIn(text)), new Set([200]))
        assert.ok(text.includes(`[${hashOf(content)}]`))
      })
  })
