import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { connect } from 'node:tls'
import { httpUpstream } from '../proxy/support.ts'
import { issueCertificates } from '../support/certificates.ts'
import { startWorld } from '../support/world.ts'

const bigBytes = 12_000_000
/** How many requests follow, two at once. */
const further = 20

for (const plainPath of [true, false])
  test(`A client that pipelines requests over TLS gets each response, plain_path: ${plainPath}`, async (t) => {
    const { port } = await httpUpstream(t, (req, res) => {
      const content = `[${String(req.url)}]`.padStart(req.url === '/big' ? bigBytes : 0)
      res.setHeader('Content-Length', content.length).end(content)
    })
    const { server } = issueCertificates()
    const world = await startWorld(t, {
      upstream: new URL(`http://127.0.0.1:${port}`),
      upstreamSettings: 'rules: [{ path: /*, access: public }]',
      listen: (address) =>
        `{ address: "${address}", plain_path: ${plainPath}, tls: { cert_file: ${server.cert}, key_file: ${server.key} } }`,
    })
    const socket = connect({ port: Number(new URL(world.url).port), host: '127.0.0.1', rejectUnauthorized: false })
    t.after(() => socket.destroy())
    const send = (at: number) => {
      const last = at === further ? 'Connection: close\r\n' : ''
      // Each part is a TLS record of its own.
      for (const part of [`GET /${at} HTTP/1.1\r\n`, 'Host: h\r\n', `${last}\r\n`]) socket.write(part)
    }
    // Node's parser reads all requests of this connection.
    socket.write('GET /big HTTP/1.1\r\nHost: h\r\nTE: trailers\r\n\r\n')
    let received = ''
    let sent = 0
    socket.on('data', (part: Buffer) => {
      received += part.toString('latin1')
      if (sent === further) return
      // The gateway has to wait for this client when it gets the next two requests.
      socket.pause()
      send((sent += 1))
      send((sent += 1))
      setTimeout(() => socket.resume(), 10)
    })
    await once(socket, 'close')
    const answered = [...received.matchAll(/\[(\/\w+)\]/g)].map(([, path]) => path)
    assert.deepEqual(answered, ['/big', ...Array.from({ length: further }, (_, at) => `/${at + 1}`)])
  })
