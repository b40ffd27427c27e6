import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import type { TLSSocket } from 'node:tls'
import type { Configuration } from 'oidc-provider'
import type { DemoPerson } from '../../examples/demo/people.ts'
import { startDemoProvider, type DemoProvider, type DemoProviderOptions } from '../../examples/demo/provider.ts'

/** Handles a request in place of the provider. `pass` lets the provider handle it. */
export type Fault = (req: IncomingMessage, res: ServerResponse, pass: () => void) => void

/** A real OpenID Provider behind a server that counts requests and misbehaves on demand. */
export interface TestProvider extends DemoProvider {
  /** The number of requests for a path. */
  hits(path: string): number
  /** Replaces the responses at a path until the returned function is called. */
  fault(path: string, fault: Fault): () => void
  /** Changes a JSON response of the provider. */
  bend(path: string, change: (body: Record<string, unknown>) => void): () => void
  /** Accepts no connections and closes the open ones. `up` listens again. */
  down(): Promise<void>
  up(): Promise<void>
}

export interface TestProviderOptions extends Omit<DemoProviderOptions, 'host' | 'port' | 'issuer'> {
  readonly startDown?: boolean
  readonly people?: readonly DemoPerson[]
  /**
   * Serves https with this certificate (PEM). The provider finds the certificate of a client, in
   * base64, in the field `x-client-certificate`.
   */
  readonly tls?: { readonly cert: string; readonly key: string }
  /** The host in the issuer. Default: 127.0.0.1. */
  readonly host?: string
  /** The port in the issuer. Default: a free one. */
  readonly port?: number
}

export async function startProvider(
  t: TestContext,
  { startDown = false, tls, host = '127.0.0.1', port: wanted = 0, ...options }: TestProviderOptions,
): Promise<TestProvider> {
  const hits = new Map<string, number>()
  const faults = new Map<string, Fault>()
  let behind = 0
  const handle = (req: IncomingMessage, res: ServerResponse) => {
    const path = (req.url ?? '').replace(/\?.*$/s, '')
    hits.set(path, (hits.get(path) ?? 0) + 1)
    const pass = () => forward(req, res, behind)
    const fault = faults.get(path)
    if (fault) fault(req, res, pass)
    else pass()
  }
  const door =
    tls === undefined
      ? createServer(handle)
      : createSecureServer({ ...tls, requestCert: true, rejectUnauthorized: false }, handle)
  const listen = (port: number) => new Promise<void>((resolve) => door.listen(port, '127.0.0.1', resolve))
  const shut = () =>
    new Promise<void>((resolve) => {
      door.close(() => resolve())
      door.closeAllConnections()
    })
  await listen(wanted)
  const { port } = door.address() as AddressInfo
  if (startDown) await shut()
  const provider = await startDemoProvider({
    ...options,
    issuer: new URL(`${tls === undefined ? 'http' : 'https'}://${host}:${port}`),
    host: '127.0.0.1',
    port: 0,
  })
  behind = Number(provider.address.port)
  t.after(async () => {
    if (door.listening) await shut()
    await provider.close()
  })

  const fault = (path: string, act: Fault) => {
    faults.set(path, act)
    return () => void faults.delete(path)
  }
  return {
    ...provider,
    hits: (path) => hits.get(path) ?? 0,
    fault,
    bend: (path, change) => fault(path, (req, res) => forward(req, res, behind, change)),
    down: shut,
    up: () => listen(port),
  }
}

function forward(
  req: IncomingMessage,
  res: ServerResponse,
  port: number,
  change?: (body: Record<string, unknown>) => void,
): void {
  const onward = request(
    { host: '127.0.0.1', port, path: req.url, method: req.method, headers: { ...req.headers, ...tlsFacts(req) } },
    (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => {
        let body = Buffer.concat(chunks)
        if (change !== undefined && response.statusCode === 200) {
          const value = JSON.parse(body.toString()) as Record<string, unknown>
          change(value)
          body = Buffer.from(JSON.stringify(value))
        }
        const { 'transfer-encoding': _, ...headers } = response.headers
        res.writeHead(response.statusCode ?? 502, { ...headers, 'content-length': body.length }).end(body)
      })
    },
  )
  onward.on('error', () => res.destroy())
  req.pipe(onward)
}

/** What the server behind learns about a connection with TLS. */
function tlsFacts({ socket }: IncomingMessage): Record<string, string> {
  if (!('getPeerCertificate' in socket)) return {}
  const { raw } = (socket as TLSSocket).getPeerCertificate() as { readonly raw?: Buffer }
  return {
    'x-forwarded-proto': 'https',
    ...(raw === undefined ? {} : { 'x-client-certificate': raw.toString('base64') }),
  }
}

/** Makes oidc-provider leave `sid` out of the ID Tokens. */
export function withoutSid(configuration: Configuration): Configuration {
  const clients = configuration.clients?.map((one) => ({ ...one, backchannel_logout_session_required: false }))
  return { ...configuration, ...(clients && { clients }) }
}
