import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { Http1Transport } from '../../src/transport/http1/http1-transport.ts'
import { proxyHeader } from '../../src/transport/proxy-protocol.ts'
import type { TransportTarget } from '../../src/transport/transport.ts'
import { issueCertificates } from '../support/certificates.ts'

const { server: files } = issueCertificates()

/** A target that reads a PROXY header first, and then requests, over TLS where `isTls`. */
async function target(t: TestContext, isTls: boolean) {
  const headers: Buffer[] = []
  const requests: string[] = []
  const application = (req: IncomingMessage, res: ServerResponse) => {
    requests.push(`${req.method} ${req.url}`)
    res.end('ok')
  }
  const keys = { key: readFileSync(files.key), cert: readFileSync(files.cert) }
  const inner = isTls ? createTlsServer(keys, application) : createHttpServer(application)
  const innerPort = await listening(t, inner)
  const server = createServer((socket) => {
    socket.once('readable', () => {
      const head = socket.read(16) as Buffer
      headers.push(Buffer.concat([head, (socket.read(head.readUInt16BE(14)) as Buffer | null) ?? Buffer.alloc(0)]))
      const onward = connect(innerPort, '127.0.0.1').on('error', () => {})
      socket
        .on('error', () => {})
        .pipe(onward)
        .pipe(socket)
    })
  })
  return { headers, requests, port: await listening(t, server) }
}

async function listening(t: TestContext, server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return (server.address() as AddressInfo).port
}

function transportTo(t: TestContext, port: number, settings: Partial<TransportTarget>) {
  const transport = new Http1Transport({
    ...{ host: 'localhost', port, tls: undefined, tellsClient: true, maxConnections: 4 },
    ...{ connectTimeoutMs: 5_000, keepAliveMs: 60_000, lifetimeMs: 60_000, ...settings },
  })
  t.after(() => transport.destroy())
  return (client: string | undefined) =>
    new Promise<string>((resolve) => {
      const request = { method: 'GET', path: '/', headers: ['Host', 'a'], identity: [], body: undefined, client }
      transport.dispatch(
        { ...request, upgrade: undefined },
        {
          ...{ onSend: () => true, onResponse: () => {}, onShortPart: () => {}, onDone: () => {}, onSwitch: () => {} },
          onContent: (_, giveBack) => giveBack(),
          onEnd: () => resolve('ok'),
          onError: (error) => resolve(error.message),
        },
      )
    })
}

/** The client and the target of a header: addresses and ports. */
function addressesIn(header: Buffer): string {
  const [length, from] = header[13] === 0x11 ? [4, 16] : [16, 16]
  const text = (at: number) =>
    length === 4
      ? [...header.subarray(at, at + 4)].join('.')
      : (
          header
            .subarray(at, at + 16)
            .toString('hex')
            .match(/.{4}/g) ?? []
        ).join(':')
  const ports = from + 2 * length
  return `${text(from)} ${text(from + length)} ${header.readUInt16BE(ports)} ${header.readUInt16BE(ports + 2) > 0}`
}

for (const isTls of [false, true])
  test(`A connection${isTls ? ' with TLS' : ''} begins with the address of its client, and is used for no other one`, async (t) => {
    const { headers, requests, port } = await target(t, isTls)
    const get = transportTo(t, port, { tls: isTls ? { ca: readFileSync(files.ca, 'utf8') } : undefined })

    for (const client of ['192.0.2.1', '192.0.2.2', '192.0.2.1', '192.0.2.2', '192.0.2.1'])
      assert.equal(await get(client), 'ok')

    assert.equal(requests.length, 5)
    assert.deepEqual(headers.map(addressesIn), ['192.0.2.1 127.0.0.1 0 true', '192.0.2.2 127.0.0.1 0 true'])
    assert.ok(headers.every((header) => header[12] === 0x21))
  })

test('An idle connection of another client gives way when there is no other', async (t) => {
  const { headers, port } = await target(t, false)
  const get = transportTo(t, port, { maxConnections: 1 })

  for (const client of ['192.0.2.1', '192.0.2.2', '192.0.2.1']) assert.equal(await get(client), 'ok')
  assert.equal(headers.length, 3)
})

test('A request of the gateway itself has no client address', async (t) => {
  const { headers, port } = await target(t, false)
  const get = transportTo(t, port, {})

  assert.equal(await get(undefined), 'ok')
  assert.equal(headers[0]?.toString('hex'), '0d0a0d0a000d0a515549540a20000000')
})

for (const [client, target, expected] of [
  ['2001:db8::7', '127.0.0.1', '2001:0db8:0000:0000:0000:0000:0000:0007 0000:0000:0000:0000:0000:ffff:7f00:0001'],
  ['192.0.2.1', 'fe80::1%eth0', '0000:0000:0000:0000:0000:ffff:c000:0201 fe80:0000:0000:0000:0000:0000:0000:0001'],
  ['::ffff:192.0.2.1', '::1', '0000:0000:0000:0000:0000:ffff:c000:0201 0000:0000:0000:0000:0000:0000:0000:0001'],
  ['1:2:3:4:5:6:7:8', '::', '0001:0002:0003:0004:0005:0006:0007:0008 0000:0000:0000:0000:0000:0000:0000:0000'],
] as const)
  test(`The header has the addresses ${client} and ${target}`, () => {
    const header = proxyHeader(client, { remoteAddress: target, remotePort: 80 } as unknown as Socket)

    assert.equal(header[13], 0x21)
    assert.equal(header.length, 16 + header.readUInt16BE(14))
    assert.equal(addressesIn(header), `${expected} 0 true`)
  })
