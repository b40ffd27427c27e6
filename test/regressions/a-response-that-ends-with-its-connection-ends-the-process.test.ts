import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { getDefaultHighWaterMark } from 'node:stream'
import { test, type TestContext } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { createServer } from 'node:tls'
import { rawUpstream, startGateway, trusting } from '../proxy/support.ts'
import { issueCertificates } from '../support/certificates.ts'

async function serve(t: TestContext, scheme: string, response: (socket: Socket) => void) {
  if (scheme === 'http')
    return { url: new URL(`http://127.0.0.1:${await rawUpstream(t, response)}`), tls: trusting(undefined) }
  const { cert, key, ca } = issueCertificates().server
  const server = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (socket) => {
    socket.on('error', () => {}).once('data', () => response(socket))
  }).listen(0)
  await once(server, 'listening')
  t.after(() => server.close())
  return {
    url: new URL(`https://localhost:${(server.address() as AddressInfo).port}`),
    tls: trusting(readFileSync(ca, 'utf8')),
  }
}

for (const scheme of ['http', 'https'])
  for (const [kind, fields] of [
    ['a complete response', ''],
    ['an incomplete response', 'Content-Length: 1000000000\r\n'],
  ] as const)
    test(`The process survives ${kind} that ends with its connection while the client still reads, over ${scheme}`, async (t) => {
      let response: ServerResponse | undefined
      let sent = 0
      let isSent = () => {}
      const allSent = new Promise<void>((resolve) => (isSent = resolve))
      const write = (socket: Socket, bytes: number) => socket.write('x'.repeat(bytes), () => (sent += bytes))
      const answer = async (socket: Socket) => {
        socket.write(`HTTP/1.1 200 OK\r\nConnection: close\r\n${fields}\r\n`)
        for (let behind = 0; behind < 50; behind = response?.writableNeedDrain ? behind + 1 : 0) {
          if (behind === 0) write(socket, 32_000)
          await turn()
        }
        // The gateway reads these bytes at once, and then pauses the connection once more.
        write(socket, getDefaultHighWaterMark(false) - 4)
        socket.end()
        for (let turns = 0; turns < 50; turns += 1) await turn()
        isSent()
      }
      const upstream = await serve(t, scheme, (socket) => void answer(socket))
      const { origin, server } = await startGateway(t, 0, { upstream })
      server.once('request', (_, res) => (response = res))
      const [received] = (await once(request(origin, { agent: false }).end(), 'response')) as [IncomingMessage]
      await allSent

      let bytes = 0
      const reading = (async () => {
        for await (const part of received) bytes += (part as Buffer).length
      })()

      if (fields !== '') await assert.rejects(reading)
      else await reading.then(() => assert.equal(bytes, sent))
    })
