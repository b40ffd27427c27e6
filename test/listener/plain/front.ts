import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { Front, type FrontOptions } from '../../../src/listener/plain/plain-connection.ts'

/** Starts a server whose plain requests are served by `request`, and nothing else. */
export async function startFront(
  t: TestContext,
  request: FrontOptions['request'],
): Promise<{ readonly server: Server; readonly port: number; readonly front: Front }> {
  const server = createServer()
  const front = new Front(server, false, {
    request,
    isDraining: () => false,
    maxHeadBytes: 16 * 1024,
    headersTimeoutMs: 60_000,
    keepAliveMs: 75_000,
    arrived: () => {},
    incomplete: () => {},
    handedOver: () => {},
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  return { server, port: (server.address() as AddressInfo).port, front }
}
