import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'

/** An application that responds to all requests, and records their header fields. */
export async function startRecordingApplication(t: TestContext) {
  const seen: IncomingMessage['headers'][] = []
  const server = createServer((req, res) => {
    seen.push(req.headers)
    res.end('ok')
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => server.close())
  return { url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`), seen }
}
