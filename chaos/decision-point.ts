// The policy decision point of a chaos run (OpenID AuthZEN): it denies what ends in `/denied`.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { freePort } from '../test/support/free-port.ts'
import type { Scope } from '../test/support/redis.ts'
import type { Network } from './network.ts'

/** Starts it, and returns the URL of its evaluations behind the network. */
export async function startDecisionPoint(scope: Scope, network: Network): Promise<string> {
  const server = createServer((req, res) => void decide(req, res))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  scope.after(() => server.close().closeAllConnections())
  const port = await freePort()
  await network.link('decision', port, (server.address() as AddressInfo).port)
  return `http://${network.host('decision')}:${port}/access/v1/evaluation`
}

async function decide(req: IncomingMessage, res: ServerResponse): Promise<void> {
  const { resource } = JSON.parse(await text(req)) as { readonly resource: { readonly id: string } }
  res.setHeader('content-type', 'application/json')
  res.end(JSON.stringify({ decision: !resource.id.endsWith('/denied') }))
}
