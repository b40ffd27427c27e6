import assert from 'node:assert/strict'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { WebSocketServer } from 'ws'
import { startProvider, type TestProvider } from '../support/provider.ts'
import { secrets } from '../support/world.ts'

/** A request as the application received it. */
export interface Received {
  readonly method: string
  readonly url: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: string
}

export interface ReceivingApplication {
  readonly port: number
  readonly received: Received[]
}

/** An application that returns each request as JSON, and sets a cookie. */
export async function startApplication(t: TestContext): Promise<ReceivingApplication> {
  const received: Received[] = []
  const note = (req: IncomingMessage, body: string) => {
    const { rawHeaders, method = '', url = '' } = req
    const headers = rawHeaders.flatMap((name, at) => (at % 2 === 0 ? [[name, rawHeaders[at + 1] ?? ''] as const] : []))
    const request = { method, url, headers, body }
    received.push(request)
    return request
  }
  const server = createServer((req, res) => {
    let body = ''
    req.setEncoding('utf8').on('data', (text: string) => (body += text))
    req.on('end', () => {
      res.setHeader('Set-Cookie', 'WIKISESSION=1; Path=/')
      res.end(JSON.stringify(note(req, body)))
    })
  })
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', (socket, req) => {
    const request = note(req, '')
    socket.on('message', () => socket.send(JSON.stringify(request)))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    for (const socket of sockets.clients) socket.terminate()
    server.closeAllConnections()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, received }
}

/** The provider of the examples, for a gateway that browsers reach at `url`. */
export function startProviderFor(t: TestContext, url: string): Promise<TestProvider> {
  return startProvider(t, {
    client_id: 'wiki',
    client_secret: secrets.CLIENT_SECRET,
    redirect_uris: [`${url}/.gatehouse/callback`],
    post_logout_redirect_uris: [`${url}/.gatehouse/signed-out`],
    backchannel_logout_uri: `${url}/.gatehouse/backchannel-logout`,
  })
}

/** What the addresses of an example are in a test. */
export interface Places {
  /** The URL of the site, for browsers. */
  readonly url: string
  readonly provider: TestProvider
  readonly proxy: number
  readonly gateway: number
  readonly application: number
  /** The port for Envoy over gRPC. */
  readonly grpc?: number
}

/** The text of an example with the addresses of a test. */
export function placed(text: string, { url, provider, ...ports }: Places): string {
  const known = { 8000: ports.proxy, 8443: ports.proxy, 8080: ports.gateway, 3000: ports.application, 9191: ports.grpc }
  return Object.entries(known)
    .reduce((changed, [port, here]) => changed.replaceAll(new RegExp(`\\b${port}\\b`, 'g'), String(here ?? port)), text)
    .replaceAll('https://wiki.example.com', url)
    .replaceAll(
      'https://id.example.com/realms/staff',
      `${provider.issuer}\n  claims: { fields: https://id.example.com/claims/fields }`,
    )
}

/** The values of a field, in each spelling that an application may take for this name. */
export function valuesOf({ headers }: Received, name: string): string[] {
  const canonical = (text: string) => text.toLowerCase().replaceAll(/[^a-z\d]+/g, '-')
  return headers.filter(([each]) => canonical(each) === name).map(([, value]) => value)
}

/** What the application received last. */
export function last({ received }: { readonly received: readonly Received[] }): Received {
  const request = received.at(-1)
  assert.ok(request, 'the application received no request')
  return request
}
