// A gateway between a small provider and an application that records its requests. The tests of
// advisories use it.
import assert from 'node:assert/strict'
import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { loadConfig, type LoadResult } from '../../src/config/load.ts'
import type { GatewayConfig } from '../../src/config/model/gateway.ts'
import type { Log, LogFields } from '../../src/observe/log.ts'
import { startGateway } from '../../src/server/gateway.ts'
import { formatDiagnostics } from '../support/diagnostics.ts'
import { freePort } from '../support/free-port.ts'

export type Claims = Readonly<Record<string, unknown>>

export interface BedOptions {
  /** The value of `listen` for an address. */
  readonly listen?: (address: string) => string
  /** The upstream's rules, a YAML list on one line. */
  readonly rules?: string
  /** YAML of the upstream, indented by four. */
  readonly upstream?: string
  /** YAML below `session:`, indented by two. */
  readonly session?: string
  /** YAML below `provider:`, indented by two. */
  readonly provider?: string
  /** YAML at the top level. */
  readonly settings?: string
  /** The application. Its requests are recorded in any case. */
  readonly application?: RequestListener
}

/** The requests that reached the application. */
export interface Seen {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly rawHeaders: readonly string[]
  /** The requests up to now. */
  readonly rawTrailers: () => readonly string[]
  body: string
}

export interface Question {
  readonly method?: string
  readonly cookie?: string
  /** Lines, `Name: value`. */
  readonly headers?: readonly string[]
  readonly body?: string
}

export interface AdvisoryResponse {
  readonly status: number
  /** The lines of a name in lower case. */
  header(name: string): string[]
  readonly body: string
  readonly text: string
}

/** A provider that signs in a given person, and misbehaves on demand. */
export interface SmallProvider {
  readonly issuer: string
  /** The number of requests for a path. */
  hits(path: string): number
  /** Takes a browser through the provider as this person. Returns the callback URL. */
  authorize(location: string, person?: Claims): URL
  /** Changes the responses of the token endpoint, or the claims of the ID Token in them. */
  bend(change: { readonly response?: Claims; readonly idToken?: Claims }): void
  /** Replaces the responses at a path. */
  fault(path: string, listener: RequestListener): void
  /** Changes the claims of UserInfo from now on. */
  say(claims: Claims): void
  /** A token that the provider has signed. */
  token(claims: Claims, header?: Claims): string
}

export interface Bed {
  readonly config: GatewayConfig
  readonly origin: string
  readonly port: number
  readonly provider: SmallProvider
  readonly seen: Seen[]
  readonly log: { readonly message: string; readonly fields: LogFields }[]
  /** Sends a request unchanged, on a new connection. */
  ask(target: string, question?: Question): Promise<AdvisoryResponse>
  /** Sends bytes, and returns all received bytes when the connection is closed. */
  raw(text: string): Promise<string>
  /** Signs in, and returns the `Cookie` header. */
  signIn(person?: Claims): Promise<string>
  /** Moves the gateway's clock on. */
  moveClock(ms: number): void
  /** Signs in with this `return_to`, and returns the final URL. */
  landing(return_to: string): Promise<URL>
}

export const jane: Claims = { sub: 'jane', email: 'jane@example.com', groups: ['staff'] }
const env = {
  CLIENT_SECRET: 'correct horse battery staple',
  SESSION_KEY: Buffer.alloc(32, 5).toString('base64'),
}

const usualRules =
  '[{ path: /public/*, access: public }, { path: /news/*, access: optional }, ' +
  '{ path: /admin/*, require: { claim: groups, any_of: [admins] } }]'

/** A running gateway with its provider and its application. */
export async function startBed(t: TestContext, options: BedOptions = {}): Promise<Bed> {
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const provider = await startSmallProvider(t)
  const seen: Seen[] = []
  const application = await listen(t, createServer(keeping(seen, options.application ?? respondPlainly)))
  const loaded = configure(
    t,
    `listen: ${options.listen?.(`127.0.0.1:${port}`) ?? `127.0.0.1:${port}`}
external_url: ${origin}
shutdown: { drain_timeout: 0s }
${options.settings ?? ''}
provider:
  issuer: ${provider.issuer}
  client_id: app
  client_secret: { env: CLIENT_SECRET }
  id_token_signed_response_alg: ES256
  ${options.provider ?? ''}
session:
  keys: [{ env: SESSION_KEY }]
  ${options.session ?? ''}
upstreams:
  app:
    url: http://127.0.0.1:${application}
    headers: { X-Remote-User: sub, X-Email: email, X-Groups: { claim: groups, join: "," } }
    rules: ${options.rules ?? usualRules}
    ${options.upstream ?? ''}
`,
  )
  if (!loaded.ok) throw new Error(formatDiagnostics(loaded.diagnostics))
  let moved = 0
  const log: Bed['log'] = []
  const write = (message: string, fields: LogFields = {}) => void log.push({ message, fields })
  const keepingLog: Log = { debug: write, info: write, warn: write, error: write, announce: write }
  const gateway = await startGateway(loaded.config, { log: keepingLog, clock: { now: () => Date.now() + moved } })
  t.after(() => gateway.close())

  const raw = (text: string) => exchange(port, text)
  const ask = async (target: string, { method = 'GET', cookie, headers = [], body }: Question = {}) => {
    const lines = [`${method} ${target} HTTP/1.1`, `Host: 127.0.0.1:${port}`, 'Connection: close', ...headers]
    if (cookie !== undefined) lines.push(`Cookie: ${cookie}`)
    if (body !== undefined) lines.push(`Content-Length: ${Buffer.byteLength(body)}`)
    return responseOf(await raw(`${lines.join('\r\n')}\r\n\r\n${body ?? ''}`))
  }
  const come = async (person: Claims, return_to: string) => {
    const start = await ask(`/.gatehouse/sign-in?return_to=${encodeURIComponent(return_to)}`, page)
    const back = provider.authorize(start.header('location')[0] ?? '', person)
    return ask(back.pathname + back.search, { ...page, cookie: cookiesOf(start) })
  }
  return {
    config: loaded.config,
    origin,
    port,
    provider,
    seen,
    log,
    raw,
    ask,
    moveClock: (ms) => void (moved += ms),
    signIn: async (person = jane) => {
      const done = await come(person, '/')
      assert.equal(done.status, 303, done.text)
      return cookiesOf(done)
    },
    landing: async (return_to) => {
      const done = await come(jane, return_to)
      assert.equal(done.status, 303, done.text)
      return new URL(done.header('location')[0] ?? '', origin)
    },
  }
}

/** The header fields of a page load. */
export const page = { headers: ['Accept: text/html'] } as const

/** The same, for a click on a page of the gateway's own origin. */
export const click = { headers: ['Accept: text/html', 'Sec-Fetch-Site: same-origin'] } as const

/** Checks that a rejected request got nothing of the application and did not reach it. */
export function assertHeld(response: AdvisoryResponse, bed: Bed): void {
  assert.ok([303, 400, 401, 403, 404].includes(response.status), `${response.status}`)
  assert.ok(!response.body.includes('application'), response.body)
  assert.deepEqual(bed.seen, [])
}

/** The `Cookie` header of a browser after this response. */
export function cookiesOf(response: AdvisoryResponse): string {
  return response
    .header('set-cookie')
    .filter((line) => !/max-age=0/i.test(line))
    .map((line) => line.split(';')[0])
    .join('; ')
}

/** Loads a configuration from YAML. */
export function configure(t: TestContext, yaml: string): LoadResult {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-advisory-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'gateway.yaml')
  writeFileSync(file, `version: 1\n${yaml}`)
  return loadConfig(file, env)
}

function keeping(seen: Seen[], listener: RequestListener): RequestListener {
  return (req, res) => {
    const { method = '', url = '', headers, rawHeaders } = req
    const one: Seen = { method, url, headers, rawHeaders, rawTrailers: () => req.rawTrailers, body: '' }
    seen.push(one)
    req.setEncoding('latin1').on('data', (chunk: string) => (one.body += chunk))
    listener(req, res)
  }
}

const respondPlainly: RequestListener = (req, res) =>
  void req.on('end', () => res.end(`the application, for ${req.headers['x-remote-user'] ?? 'nobody'}`)).resume()

async function listen(t: TestContext, server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return (server.address() as AddressInfo).port
}

function exchange(port: number, text: string): Promise<string> {
  return new Promise((resolve) => {
    let received = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(text, 'latin1'))
    socket.setEncoding('latin1').on('data', (chunk) => (received += String(chunk)))
    socket.on('error', () => {}).on('close', () => resolve(received))
    socket.setTimeout(5000, () => socket.destroy())
  })
}

function responseOf(text: string): AdvisoryResponse {
  const [head = '', ...body] = text.split('\r\n\r\n')
  const lines = head.split('\r\n').slice(1)
  return {
    status: Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0),
    header: (name) =>
      lines
        .filter((line) => line.toLowerCase().startsWith(`${name}:`))
        .map((line) => line.slice(name.length + 1).trim()),
    body: body.join('\r\n\r\n'),
    text,
  }
}

async function startSmallProvider(t: TestContext): Promise<SmallProvider> {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const codes = new Map<string, { readonly nonce: string; readonly challenge: string; readonly person: Claims }>()
  const people = new Map<string, Claims>()
  const hits = new Map<string, number>()
  const faults = new Map<string, RequestListener>()
  let bent: Parameters<SmallProvider['bend']>[0] = {}
  let said: Claims = {}
  let issuer = ''

  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const token = (claims: Claims, header: Claims = {}) => {
    const input = `${part({ alg: 'ES256', kid: 'one', ...header })}.${part(claims)}`
    const signature = sign('sha256', Buffer.from(input), { key: privateKey, dsaEncoding: 'ieee-p1363' })
    return `${input}.${signature.toString('base64url')}`
  }
  const idToken = (person: Claims, nonce: string | undefined) => {
    const iat = Math.floor(Date.now() / 1000)
    const claims = { iss: issuer, aud: 'app', sub: person['sub'], sid: randomBytes(9).toString('hex'), nonce }
    return token({ ...claims, iat, exp: iat + 300, ...bent.idToken })
  }
  const grant = (form: URLSearchParams): Claims | undefined => {
    const code = codes.get(form.get('code') ?? '')
    const refreshed = people.get(form.get('refresh_token') ?? '')
    if (refreshed !== undefined) return tokensFor(refreshed, undefined)
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    if (code === undefined || code.challenge !== challenge) return undefined
    codes.delete(form.get('code') ?? '')
    return tokensFor(code.person, code.nonce)
  }
  const tokensFor = (person: Claims, nonce: string | undefined): Claims => {
    const [access_token, refresh_token] = [randomBytes(24).toString('hex'), randomBytes(24).toString('hex')]
    people.set(access_token, person).set(refresh_token, person)
    const id_token = idToken(person, nonce)
    return { access_token, refresh_token, id_token, token_type: 'Bearer', expires_in: 3600, ...bent.response }
  }

  const server = createServer((req, res) => {
    const path = (req.url ?? '').replace(/\?.*/s, '')
    hits.set(path, (hits.get(path) ?? 0) + 1)
    const fault = faults.get(path)
    if (fault) return void fault(req, res)
    const send = (status: number, value: unknown) =>
      void res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
    let body = ''
    req.on('data', (chunk) => (body += String(chunk)))
    req.on('end', () => {
      if (path === '/.well-known/openid-configuration') return send(200, metadata())
      if (path === '/jwks')
        return send(200, { keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'one', use: 'sig' }] })
      if (path === '/revoke') return send(200, {})
      if (path === '/userinfo') {
        const person = people.get((req.headers.authorization ?? '').slice(7))
        return person === undefined ? send(401, {}) : send(200, { ...person, ...said })
      }
      const granted = path === '/token' ? grant(new URLSearchParams(body)) : undefined
      return granted === undefined ? send(400, { error: 'invalid_grant' }) : send(200, granted)
    })
  })
  issuer = `http://127.0.0.1:${await listen(t, server)}`
  const metadata = () => ({
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    userinfo_endpoint: `${issuer}/userinfo`,
    jwks_uri: `${issuer}/jwks`,
    end_session_endpoint: `${issuer}/end`,
    revocation_endpoint: `${issuer}/revoke`,
    authorization_response_iss_parameter_supported: true,
    id_token_signing_alg_values_supported: ['ES256'],
  })

  return {
    issuer,
    hits: (path) => hits.get(path) ?? 0,
    authorize: (location, person = jane) => {
      const { searchParams: asked } = new URL(location)
      const code = randomBytes(12).toString('hex')
      codes.set(code, { nonce: asked.get('nonce') ?? '', challenge: asked.get('code_challenge') ?? '', person })
      const back = new URL(asked.get('redirect_uri') ?? '')
      back.search = String(new URLSearchParams({ code, state: asked.get('state') ?? '', iss: issuer }))
      return back
    },
    bend: (change) => void (bent = change),
    fault: (path, listener) => void faults.set(path, listener),
    say: (claims) => void (said = claims),
    token,
  }
}
