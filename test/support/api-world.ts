import type { IncomingMessage } from 'node:http'
import type { TestContext } from 'node:test'
import { request } from 'undici'
import { freePort } from './free-port.ts'
import { startRecordingApplication } from './recording-application.ts'
import { jwt, now, startSigningProvider, type Json, type SigningProvider } from './signing-provider.ts'
import { runReplica, type Replica } from './world.ts'

export interface ApiWorld {
  readonly provider: SigningProvider
  readonly gateway: Replica
  readonly url: string
  /** The header fields of the requests that the application got. */
  readonly seen: IncomingMessage['headers'][]
  /** Moves the clock of the gateway, in ms. */
  move(ms: number): void
  /** A JWT access token that the gateway accepts, with changes. */
  token(claims?: Json, header?: Json): string
  send(path: string, headers?: Record<string, string | string[]>, method?: string): Promise<ApiResponse>
  call(path: string, token: string): Promise<ApiResponse>
}

interface ApiResponse {
  readonly status: number
  readonly challenge: string
  readonly body: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
}

export const audience = 'https://api.example.com'
const rules = `[
      { path: /api/*, access_tokens: true },
      { path: /write/*, access_tokens: { scopes: [write] } },
      { path: /admins/*, access_tokens: true, require: { claim: groups, any_of: [admins] } },
      { path: /observed/*, access_tokens: true, mode: observe, require: { claim: groups, any_of: [admins] } },
      { path: /strong/*, access_tokens: true, step_up: { acr_values: [mfa], max_age: 5m } },
      { path: /maybe/*, access: optional, access_tokens: true } ]`

/** A gateway whose clock stands at `now`, with an API and a provider that the test controls. */
export async function startApi(
  t: TestContext,
  options: {
    /** YAML of the provider, on one line. */
    readonly provider?: string
    readonly accessTokens?: string
    readonly upstream?: string
    readonly headers?: string
    readonly rules?: string
    /** That of another world. */
    readonly issuer?: SigningProvider
    /** `session.store`, in YAML. Default: in memory. */
    readonly store?: string
    /** Replaces the application. */
    readonly application?: URL
    /** Replace the application. */
    readonly targets?: readonly string[]
    /** Clients may use HTTP/2 without TLS. */
    readonly isHttp2?: boolean
  } = {},
): Promise<ApiWorld> {
  const { url: application, seen } = await startRecordingApplication(t)
  const provider = options.issuer ?? (await startSigningProvider(t))
  Object.assign(provider.metadata, { introspection_endpoint: `${provider.issuer}/introspect` })
  let at = now
  const url = `http://127.0.0.1:${await freePort()}`
  const yaml = `version: 1
listen: { address: "${url.slice('http://'.length)}", h2c: ${options.isHttp2 === true} }
external_url: ${url}
provider: { issuer: "${provider.issuer}", client_id: orders, client_secret: { env: CLIENT_SECRET }, ${options.provider ?? ''} }
session: { keys: [{ env: SESSION_KEY }], store: ${options.store ?? 'memory'} }
upstreams:
  orders:
    ${options.targets === undefined ? `url: ${(options.application ?? application).origin}` : `targets: [${options.targets.join(', ')}]`}
    headers: ${options.headers ?? '{ X-Sub: sub, X-Client: client_id, X-Scope: scope }'}
    access_tokens: ${options.accessTokens ?? `{ audience: [${audience}] }`}
    rules: ${options.rules ?? rules}
    ${options.upstream ?? ''}
`
  const gateway = await runReplica(t, yaml, { now: () => at })
  const standard = { iss: provider.issuer, aud: audience, sub: 'jane', client_id: 'cli', scope: 'read write' }
  const send = async (path: string, headers: Record<string, string | string[]> = {}, method = 'GET') => {
    const response = await request(url + path, { method: method as 'GET', headers })
    return {
      status: response.statusCode,
      challenge: String(response.headers['www-authenticate'] ?? ''),
      body: await response.body.text(),
      headers: response.headers,
    }
  }
  return {
    ...{ provider, gateway, url, seen, send },
    move: (ms) => void (at += ms),
    token: (claims = {}, header = {}) =>
      jwt({ ...standard, sid: 's-1', iat: at / 1000, exp: at / 1000 + 120, ...claims }, provider.key, {
        typ: 'at+jwt',
        ...header,
      }),
    call: (path, token) => send(path, { authorization: `Bearer ${token}` }),
  }
}
