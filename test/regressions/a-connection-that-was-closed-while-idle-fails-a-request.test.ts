import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { createServer as createTlsServer } from 'node:tls'
import { Http1Transport } from '../../src/transport/http1/http1-transport.ts'
import { fetchWhole, startGateway, trusting } from '../proxy/support.ts'
import { issueCertificates } from '../support/certificates.ts'

type Fault = 'end' | 'reset' | 'half a response'

/**
 * An upstream that serves one request on each connection and fails at the next one. It records its
 * requests.
 */
async function startUpstream(t: TestContext, scheme: string, fault: Fault, keepsFirst = 1) {
  const heads: string[] = []
  const sockets = new Set<Socket>()
  const serve = (socket: Socket) => {
    let requests = 0
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('data', (chunk: Buffer) => {
      const [head = ''] = chunk.toString('latin1').split('\r\n')
      requests += 1
      heads.push(head)
      if (requests <= keepsFirst) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nserved')
      else if (fault === 'reset' && scheme === 'http') socket.resetAndDestroy()
      else if (fault === 'reset') socket.destroy()
      else socket.end(fault === 'end' ? '' : 'HTTP/1.1 2')
    })
  }
  const files = scheme === 'https' ? issueCertificates().server : undefined
  const read = (path: string | undefined) => readFileSync(path ?? '', 'utf8')
  const server = files
    ? createTlsServer({ key: read(files.key), cert: read(files.cert) }, serve)
    : createTcpServer(serve)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const { port } = server.address() as AddressInfo
  const url = new URL(`${scheme}://localhost:${port}`)
  return { heads, sockets, port, upstream: { url, tls: trusting(files && read(files.ca)), keepAliveMs: 60_000 } }
}

for (const scheme of ['http', 'https'])
  for (const [fault, method, sent, status] of [
    ['end', 'GET', 2, 200],
    ['reset', 'GET', 2, 200],
    ['reset', 'HEAD', 2, 200],
    ['half a response', 'GET', 1, 502],
    ['end', 'POST', 1, 502],
    ['end', 'DELETE', 1, 502],
  ] as const)
    test(`${method} on a connection that the upstream closes (${fault}) is sent ${sent === 2 ? 'again' : 'once'}, over ${scheme}`, async (t) => {
      const { heads, port, upstream } = await startUpstream(t, scheme, fault)
      const { origin } = await startGateway(t, port, { upstream })
      await fetchWhole(origin, { path: '/first' })

      const second = await fetchWhole(origin, { path: '/second', method })

      assert.equal(second.status, status)
      assert.deepEqual(heads, [
        'GET /first HTTP/1.1',
        ...Array.from({ length: sent }, () => `${method} /second HTTP/1.1`),
      ])
    })

for (const scheme of ['http', 'https']) {
  test(`A GET with content is sent once, over ${scheme}`, async (t) => {
    const { port, upstream, heads } = await startUpstream(t, scheme, 'reset')
    const { origin } = await startGateway(t, port, { upstream })
    await fetchWhole(origin, { path: '/first' })

    const second = await fetchWhole(origin, { path: '/second', body: 'x', headers: { 'content-length': 1 } })

    assert.equal(second.status, 502)
    assert.equal(heads.filter((head) => head.startsWith('GET /second')).length, 1)
  })

  test(`A request on a new connection that the upstream closes is not sent again, over ${scheme}`, async (t) => {
    const { heads, port, upstream } = await startUpstream(t, scheme, 'end', 0)
    const { origin } = await startGateway(t, port, { upstream })

    assert.equal((await fetchWhole(origin)).status, 502)
    assert.equal(heads.length, 1)
  })

  test(`With keep_alive: 0s, each request has its own connection, over ${scheme}`, async (t) => {
    const { sockets, port, upstream } = await startUpstream(t, scheme, 'end')
    const { origin } = await startGateway(t, port, { upstream: { ...upstream, keepAliveMs: 0 } })

    for (let each = 0; each < 2; each += 1) assert.equal((await fetchWhole(origin)).body, 'served')

    assert.equal(sockets.size, 2)
  })
}

test('A connection takes no further request after its lifetime, so that its host name is resolved again', async (t) => {
  const { sockets, port } = await startUpstream(t, 'http', 'end', Infinity)
  for (const [lifetimeMs, connections] of [
    [600_000, 1],
    [0, 3],
  ] as const) {
    sockets.clear()
    const target = { host: 'localhost', port, tls: undefined, maxConnections: 1, connectTimeoutMs: 5_000 }
    const transport = new Http1Transport({ ...target, keepAliveMs: 60_000, lifetimeMs })
    const request = { method: 'GET', path: '/', headers: ['Host', 'h'], identity: [], body: undefined }
    const served = () =>
      new Promise<void>((resolve, reject) =>
        transport.dispatch(
          { ...request, upgrade: undefined },
          {
            onSend: () => true,
            onResponse() {},
            onShortPart() {},
            onContent: (_part, giveBack) => giveBack(),
            onEnd: () => resolve(),
            onSwitch() {},
            onError: reject,
            onDone() {},
          },
        ),
      )
    for (let each = 0; each < 3; each += 1) await served()
    await transport.destroy()

    assert.equal(sockets.size, connections)
  }
})
