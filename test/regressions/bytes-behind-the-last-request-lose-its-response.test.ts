// Slow: 3 s, many connections with large responses
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { test, type TestContext } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { httpUpstream } from '../proxy/support.ts'
import { issueCertificates } from '../support/certificates.ts'
import { statusesIn } from '../support/raw-exchange.ts'
import { until } from '../support/until.ts'
import { startWorld } from '../support/world.ts'

const length = 100_000
const content = 'x'.repeat(length)
const get = (path: string, ...fields: readonly string[]) =>
  [`GET ${path} HTTP/1.1`, 'Host: h', ...fields, '', ''].join('\r\n')

/** A gateway whose application holds each response until the test sends it. */
async function start(t: TestContext, plainPath: boolean, isTls: boolean) {
  const seen: string[] = []
  const held: ServerResponse[] = []
  const { port } = await httpUpstream(t, (req, res) => {
    seen.push(`${req.method} ${req.url}`)
    req.resume().once('end', () => (req.url?.startsWith('/held') === true ? held.push(res) : res.end(content)))
  })
  const { server } = issueCertificates()
  const tls = isTls ? `, tls: { cert_file: ${server.cert}, key_file: ${server.key} }` : ''
  const world = await startWorld(t, {
    upstream: new URL(`http://127.0.0.1:${port}`),
    upstreamSettings: 'rules: [{ path: /*, access: public }]',
    settings: 'limits: { headers_timeout: 1s }',
    listen: (address) => `{ address: "${address}", plain_path: ${plainPath}${tls} }`,
  })
  const options = { port: Number(new URL(world.url).port), host: '127.0.0.1', allowHalfOpen: true }
  const client = () => {
    const socket = isTls ? connectTls({ ...options, rejectUnauthorized: false }) : connect(options)
    t.after(() => socket.destroy())
    let received = ''
    let failure: Error | undefined
    socket.on('error', (error) => (failure = error))
    socket.on('data', (part: Buffer) => (received += part.toString('latin1')))
    const ended = Promise.race([once(socket, 'end'), once(socket, 'close')])
    return {
      socket,
      /** What the client has received when the gateway has sent everything. */
      async whole(): Promise<string> {
        await ended
        assert.equal(failure, undefined)
        socket.end()
        return received
      },
    }
  }
  return { world, seen, held, client }
}

/** The last requests of a connection. */
const last = {
  'a plain request': get('/held', 'Connection: close'),
  'a request of HTTP/1.0': 'GET /held HTTP/1.0\r\nHost: h\r\n\r\n',
  'an OPTIONS request': 'OPTIONS /held HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n',
  'a chunked POST':
    'POST /held HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n',
}
const behind = {
  'another request': get('/behind'),
  'bytes that are no request': '\0\r\n?',
  '100 kB': content,
}

for (const plainPath of [true, false])
  for (const isTls of [false, true]) {
    const place = `plain_path: ${plainPath}, ${isTls ? 'TLS' : 'http'}`

    test(`The last request of a connection gets its response, whatever follows it (${place})`, async (t) => {
      const { seen, held, client } = await start(t, plainPath, isTls)
      for (const [what, request] of Object.entries(last))
        for (const [bytes, more] of Object.entries(behind)) {
          const one = client()
          one.socket.write(request + more)
          await until('the request has arrived', () => held.length === 1)
          // They also arrive while the application is busy, and with the response.
          await new Promise((resolve) => one.socket.write(more, resolve))
          held.pop()?.end(content)
          one.socket.write(more)
          const text = await one.whole()
          assert.deepEqual(statusesIn(text), [200], `${what}, ${bytes}`)
          assert.ok(text.endsWith(content), `${what}, ${bytes}: ${text.length}`)
        }
      assert.deepEqual(
        seen.filter((each) => each.endsWith('/behind')),
        [],
      )
    })

    test(`A request gets its response when bytes follow that are no request (${place})`, async (t) => {
      const { held, client } = await start(t, plainPath, isTls)
      for (const fields of [[], ['TE: trailers']])
        for (const before of [0, 1, 3]) {
          const one = client()
          one.socket.write(get('/held', ...fields).repeat(before + 1) + '\0\r\n?')
          for (let count = 0; count <= before; count += 1) {
            await until('the request has arrived', () => held.length === 1)
            held.pop()?.end(content)
          }
          assert.deepEqual(statusesIn(await one.whole()), [...Array<number>(before + 1).fill(200), 400])
        }
    })

    test(`A head that is never completed takes no earlier response away (${place})`, async (t) => {
      const { held, client } = await start(t, plainPath, isTls)
      const one = client()
      one.socket.write(get('/held', 'TE: trailers') + get('/half').slice(0, -4))
      await until('the request has arrived', () => held.length === 1)
      one.socket.write('\r\nX: y')
      const other = client()
      other.socket.write(get('/half').slice(0, -4))
      assert.deepEqual(statusesIn(await other.whole()), [408])
      held.pop()?.end(content)
      assert.deepEqual(statusesIn(await one.whole()), [200, 408])
    })

    test(`Each of many pipelined requests is answered or refused, in order (${place})`, async (t) => {
      const { world, seen, client } = await start(t, plainPath, isTls)
      for (const fields of [[], ['TE: trailers']])
        for (const count of [64, 65, 66, 67, 400]) {
          seen.length = 0
          const one = client()
          one.socket.write(
            Array.from({ length: count }, (_, at) =>
              get(`/${at}`, ...fields, ...(at === count - 1 ? ['Connection: close'] : [])),
            ).join(''),
          )
          const statuses = statusesIn(await one.whole())
          const carriedOut = statuses.filter((status) => status === 200).length
          assert.deepEqual(
            seen,
            Array.from({ length: carriedOut }, (_, at) => `GET /${at}`),
          )
          if (fields.length === 0 && plainPath) assert.equal(carriedOut, count)
          else if (count > 65) assert.deepEqual(statuses, [...Array<number>(65).fill(200), 503])
          else assert.equal(carriedOut, count)
        }
      const limits = world.replicas[0]?.log.filter(({ fields }) => fields['limit'] === 'pipelined requests').length
      assert.ok(limits !== undefined && limits > 0)
    })
  }
