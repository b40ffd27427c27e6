import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { freePort } from './free-port.ts'
import { startProvider, type TestProvider } from './provider.ts'

/**
 * The provider, the application and the settings for a gateway in a separate process. The test
 * starts the gateway.
 */
export interface Surroundings {
  /** The gateway's address, which is its `external_url`. */
  readonly url: string
  readonly adminUrl: string
  readonly provider: TestProvider
  readonly upstream: HeldUpstream
  /** The path of the configuration file. */
  readonly file: string
  readonly folder: string
  /** The secrets that the file names. */
  readonly env: Readonly<Record<string, string>>
}

export interface SurroundingsOptions {
  readonly store?: string
  readonly providerStartsDown?: boolean
  /** YAML below `session:`, indented by two. */
  readonly session?: string
  /** YAML at the top level. */
  readonly settings?: string
  /** The value of `admin.page`, in YAML on one line. */
  readonly page?: string
  /** The rules of the application, in YAML on one line. */
  readonly rules?: string
  /** The prefix of the endpoints. Default: `/.gatehouse/`. */
  readonly reservedPrefix?: string
}

/** An application that responds at once. Below `/slow` it responds when `release` is called. */
export interface HeldUpstream {
  readonly url: string
  /** The number of waiting slow requests. */
  readonly waiting: () => number
  /** Responds to the waiting requests. */
  release(): void
}

const env = { CLIENT_SECRET: 'correct horse battery staple', SESSION_KEY: Buffer.alloc(32, 9).toString('base64') }

/**
 * Starts a provider and an application, and writes a configuration file for a gateway between them.
 */
export async function prepareGateway(t: TestContext, options: SurroundingsOptions = {}): Promise<Surroundings> {
  const [port, adminPort] = [await freePort(), await freePort()]
  const url = `http://127.0.0.1:${port}`
  const { reservedPrefix = '/.gatehouse/' } = options
  const provider = await startProvider(t, {
    client_id: 'orders',
    client_secret: env.CLIENT_SECRET,
    redirect_uris: [`${url}${reservedPrefix}callback`],
    post_logout_redirect_uris: [`${url}${reservedPrefix}signed-out`],
    backchannel_logout_uri: `${url}${reservedPrefix}backchannel-logout`,
    startDown: options.providerStartsDown ?? false,
  })
  const upstream = await startHeldUpstream(t)
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-process-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'gateway.yaml')
  writeFileSync(
    file,
    `version: 1
listen: 127.0.0.1:${port}
admin: { listen: "127.0.0.1:${adminPort}"${options.page === undefined ? '' : `, page: ${options.page}`} }
external_url: ${url}
reserved_prefix: ${reservedPrefix}
${options.settings ?? ''}
provider:
  issuer: ${provider.issuer}
  client_id: orders
  client_secret: { env: CLIENT_SECRET }
session:
  keys: [{ env: SESSION_KEY }]
  store: ${options.store ?? 'memory'}
  ${options.session ?? ''}
upstreams:
  orders:
    url: ${upstream.url}
    headers: { X-Remote-User: sub }
    rules: ${options.rules ?? '[{ path: /static/*, access: public }]'}
`,
  )
  return { url, adminUrl: `http://127.0.0.1:${adminPort}`, provider, upstream, file, folder, env }
}

/**
 * Writes the file of a further replica. It has its own addresses and shares everything else,
 * `external_url` included.
 */
export async function prepareReplica(of: Surroundings): Promise<Surroundings> {
  const [port, adminPort] = [await freePort(), await freePort()]
  const text = readFileSync(of.file, 'utf8')
    .replace(/^listen: .*$/m, `listen: 127.0.0.1:${port}`)
    .replace(/^admin: .*$/m, `admin: { listen: 127.0.0.1:${adminPort} }`)
  const file = join(of.folder, `replica-${port}.yaml`)
  writeFileSync(file, text)
  return { ...of, file, url: `http://127.0.0.1:${port}`, adminUrl: `http://127.0.0.1:${adminPort}` }
}

async function startHeldUpstream(t: TestContext): Promise<HeldUpstream> {
  let held: ServerResponse[] = []
  const server = createServer((req: IncomingMessage, res) => {
    if (/\/slow/.test(req.url ?? '')) held.push(res)
    else res.end(`for ${req.headers['x-remote-user'] ?? 'anybody'}`)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    waiting: () => held.length,
    release: () => {
      for (const res of held) res.end('at last')
      held = []
    },
  }
}
