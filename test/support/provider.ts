import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import type { DemoPerson } from '../../src/demo/people.ts'
import { startDemoProvider, type DemoProvider, type DemoProviderOptions } from '../../src/demo/provider.ts'

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
}

export async function startProvider(
  t: TestContext,
  { startDown = false, ...options }: TestProviderOptions,
): Promise<TestProvider> {
  const hits = new Map<string, number>()
  const faults = new Map<string, Fault>()
  let behind = 0
  const door = createServer((req, res) => {
    const path = (req.url ?? '').replace(/\?.*$/s, '')
    hits.set(path, (hits.get(path) ?? 0) + 1)
    const pass = () => forward(req, res, behind)
    const fault = faults.get(path)
    if (fault) fault(req, res, pass)
    else pass()
  })
  const listen = (port: number) => new Promise<void>((resolve) => door.listen(port, '127.0.0.1', resolve))
  const shut = () =>
    new Promise<void>((resolve) => {
      door.close(() => resolve())
      door.closeAllConnections()
    })
  await listen(0)
  const { port } = door.address() as AddressInfo
  if (startDown) await shut()
  const provider = await startDemoProvider({
    ...options,
    issuer: new URL(`http://127.0.0.1:${port}`),
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
    { host: '127.0.0.1', port, path: req.url, method: req.method, headers: req.headers },
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
