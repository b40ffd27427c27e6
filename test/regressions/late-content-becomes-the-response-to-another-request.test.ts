import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { createServer as createTlsServer } from 'node:tls'
import { fetchWhole, startGateway, trusting } from '../proxy/support.ts'
import { issueCertificates } from '../support/certificates.ts'

const sized = (content: string) => `HTTP/1.1 200 OK\r\nContent-Length: ${content.length}\r\n\r\n${content}`

/**
 * An upstream that sends `head` for the first request of a connection, and sends the content only
 * when the connection carries a second request.
 */
async function startUpstream(t: TestContext, head: string, tls: { key: string; cert: string } | undefined) {
  const sockets = new Set<Socket>()
  const serve = (socket: Socket) => {
    let requests = 0
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('data', (chunk: Buffer) => {
      const path = chunk.toString('latin1').split(' ')[1] ?? ''
      requests += 1
      if (requests > 1) socket.write(sized('poison'))
      else socket.write(path === '/first' ? head : sized('mine'))
    })
  }
  const server = tls ? createTlsServer(tls, serve) : createTcpServer(serve)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return (server.address() as AddressInfo).port
}

function tlsFiles() {
  const { key, cert, ca } = issueCertificates().server
  return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8'), ca: readFileSync(ca, 'utf8') }
}

for (const scheme of ['http', 'https'])
  for (const [what, method, status, head] of [
    ['HEAD', 'HEAD', 200, 'HTTP/1.1 200 OK\r\nContent-Length: 44\r\n\r\n'],
    [
      'HEAD that says keep-alive',
      'HEAD',
      200,
      'HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 44\r\n\r\n',
    ],
    ['a 304 with a length', 'GET', 304, 'HTTP/1.1 304 Not Modified\r\nETag: "1"\r\nContent-Length: 44\r\n\r\n'],
    ['a chunked 304', 'GET', 304, 'HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n'],
    ['a 204 with a length', 'GET', 204, 'HTTP/1.1 204 No Content\r\nContent-Length: 44\r\n\r\n'],
    ['a chunked 204', 'GET', 204, 'HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n'],
  ] as const)
    test(`Content that an upstream sends late, after ${what}, does not become the response to another request, over ${scheme}`, async (t) => {
      const tls = scheme === 'https' ? tlsFiles() : undefined
      const port = await startUpstream(t, head, tls)
      const { origin } = await startGateway(t, port, {
        upstream: {
          maxConnections: 1,
          url: new URL(`${scheme}://localhost:${port}`),
          tls: trusting(tls?.ca),
        },
      })

      const first = await fetchWhole(origin, { path: '/first', method })
      const second = await fetchWhole(origin, { path: '/second' })

      assert.deepEqual([first.status, first.body, second.body], [status, '', 'mine'])
    })
