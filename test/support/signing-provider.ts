import { createHmac, generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import type { ProviderConfig } from '../../src/config/model/provider.ts'
import type { Log } from '../../src/observe/log.ts'
import type { Provider } from '../../src/provider/provider.ts'

export type Json = Record<string, unknown>

export interface SigningKey {
  readonly alg: 'RS256' | 'ES256'
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
  /** The public key as the key set contains it. */
  readonly jwk: Json
}

export function rsaKey(kid: string, modulusLength = 2048): SigningKey {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength })
  return {
    alg: 'RS256',
    privateKey,
    publicKey,
    jwk: { ...publicKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'RS256' },
  }
}

export function ecKey(kid: string): SigningKey {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return {
    alg: 'ES256',
    privateKey,
    publicKey,
    jwk: { ...publicKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'ES256' },
  }
}

export const part = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

/**
 * Creates a JWT by hand, because libraries refuse to create invalid ones. A member of `header` that
 * is `undefined` is left out.
 */
export function jwt(payload: unknown, key: SigningKey, header: Json = {}): string {
  const input = `${part({ alg: key.alg, typ: 'JWT', kid: key.jwk['kid'], ...header })}.${part(payload)}`
  return `${input}.${sign('sha256', Buffer.from(input), { key: key.privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
}

/** Creates a JWT that is signed with a shared secret. */
export function hmacJwt(payload: unknown, secret: string | Buffer, header: Json = {}): string {
  const input = `${part({ alg: 'HS256', typ: 'JWT', ...header })}.${part(payload)}`
  return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`
}

export type Handler = (req: IncomingMessage, res: ServerResponse, body: string) => void

/** A provider whose responses the test controls. All other responses are correct. */
export interface SigningProvider {
  readonly issuer: string
  readonly config: ProviderConfig
  readonly metadata: Json
  readonly key: SigningKey
  /** The keys of the key set. At first it has one key. */
  publish(...jwks: readonly unknown[]): void
  /** The claims of a valid ID Token. Claims that are `undefined` are left out. */
  idToken(claims?: Json, header?: Json, key?: SigningKey): string
  logoutToken(claims?: Json, header?: Json, key?: SigningKey): string
  /** Replaces the responses at a path. A call without a handler restores them. */
  respond(path: string, handler?: Handler): void
  hits(path: string): number
  /** The form of the last request to the token endpoint, and its `Authorization`. */
  readonly lastTokenRequest: { readonly form: URLSearchParams; readonly authorization: string | undefined } | undefined
}

export const paths = {
  discovery: '/.well-known/openid-configuration',
  jwks: '/jwks',
  token: '/token',
  userinfo: '/userinfo',
} as const

export const client_id = 'orders'
export const logoutEvent = 'http://schemas.openid.net/event/backchannel-logout'
/** A time in the past, so that `exp` and `iat` come from the test and not from a clock. */
export const now = Date.UTC(2026, 0, 1)

const shared = rsaKey('one')

export async function startSigningProvider(
  t: TestContext,
  settings: Partial<ProviderConfig> & { readonly issuerPath?: string } = {},
): Promise<SigningProvider> {
  const { issuerPath = '', ...changed } = settings
  const hits = new Map<string, number>()
  const handlers = new Map<string, Handler>()
  let published: readonly unknown[] = [shared.jwk]
  let lastTokenRequest: SigningProvider['lastTokenRequest']

  const server = createServer((req, res) => {
    const path = (req.url ?? '').replace(/\?.*$/s, '').slice(issuerPath.replace(/\/$/, '').length)
    hits.set(path, (hits.get(path) ?? 0) + 1)
    let body = ''
    req.setEncoding('utf8').on('data', (chunk: string) => (body += chunk))
    req.on('end', () => {
      if (path === paths.token)
        lastTokenRequest = { form: new URLSearchParams(body), authorization: req.headers.authorization }
      const handler = handlers.get(path) ?? responses.get(path)
      if (handler) handler(req, res, body)
      else res.writeHead(404).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}${issuerPath.replace(/\/$/, '')}`
  const issuer = issuerPath.endsWith('/') ? `${base}/` : base
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })

  const metadata = {
    issuer,
    authorization_endpoint: `${base}/authorize`,
    token_endpoint: `${base}${paths.token}`,
    userinfo_endpoint: `${base}${paths.userinfo}`,
    jwks_uri: `${base}${paths.jwks}`,
    id_token_signing_alg_values_supported: ['RS256', 'ES256'],
  }
  const claims = (own: Json, changes: Json) => JSON.parse(JSON.stringify({ ...own, ...changes })) as Json
  const standard = { iss: issuer, aud: client_id, sub: 'jane', sid: 's-1', iat: now / 1000, exp: now / 1000 + 120 }
  const idToken = (changes: Json = {}, header: Json = {}, key = shared) =>
    jwt(claims({ ...standard, nonce: 'n-1' }, changes), key, header)
  const responses = new Map<string, Handler>([
    [paths.discovery, (_req, res) => sendJson(res, metadata)],
    [paths.jwks, (_req, res) => sendJson(res, { keys: published })],
    [paths.token, (_req, res) => sendJson(res, { ...bearer(), id_token: idToken() })],
    [paths.userinfo, (_req, res) => sendJson(res, { sub: 'jane', email: 'jane@example.com' })],
  ])

  return {
    issuer,
    metadata,
    key: shared,
    config: {
      name: 'provider',
      setting: 'provider',
      title: '',
      prefix: '/.gatehouse/',
      cookieName: '__Host-gatehouse',
      renamedClaims: {},
      issuer,
      client_id,
      client_secret: 'correct horse battery staple',
      token_endpoint_auth_method: 'client_secret_basic',
      metadata: undefined,
      clientKey: undefined,
      clientAssertion: undefined,
      decryptionKey: undefined,
      clientAssertionAudience: 'issuer',
      clientCertificate: undefined,
      response_mode: 'query',
      pushedAuthorizationRequests: 'when_required',
      signedRequests: false,
      dpop: false,
      resource: [],
      linkParams: [],
      profile: undefined,
      egressProxy: undefined,
      frontchannelLogout: false,
      idTokenClaims: [],
      oauth2: undefined,
      claimSources: [],
      claimsFrom: [],
      userinfoClaims: ['email'],
      scopes: ['openid', 'offline_access'],
      authorizationParams: {},
      endSessionParams: {},
      endSessionForm: 'when_long',
      longestEndSessionUrlBytes: 4096,
      claims: {},
      id_token_signed_response_alg: undefined,
      userinfo_signed_response_alg: undefined,
      id_token_encrypted_response_alg: undefined,
      id_token_encrypted_response_enc: undefined,
      userinfo_encrypted_response_alg: undefined,
      userinfo_encrypted_response_enc: undefined,
      authorization_encrypted_response_alg: undefined,
      authorization_encrypted_response_enc: undefined,
      clockToleranceMs: 30_000,
      timeoutMs: 60_000,
      ca: undefined,
      ...changed,
    },
    publish: (...jwks) => void (published = jwks),
    idToken,
    logoutToken: (changes = {}, header = {}, key = shared) =>
      jwt(
        claims({ ...standard, jti: randomBytes(8).toString('hex'), events: { [logoutEvent]: {} } }, changes),
        key,
        header,
      ),
    respond: (path, handler) => void (handler === undefined ? handlers.delete(path) : handlers.set(path, handler)),
    hits: (path) => hits.get(path) ?? 0,
    get lastTokenRequest() {
      return lastTokenRequest
    },
  }
}

/** The settings of a provider whose claims come from UserInfo alone. */
export const noClaims: Pick<ProviderConfig, 'idTokenClaims' | 'claimsFrom'> = { idTokenClaims: [], claimsFrom: [] }
export const noApis: Provider['apis'] = { read: async () => new Map() }

/** The members of a token response except for the ID Token. */
export function bearer(): Json {
  return { access_token: randomBytes(16).toString('hex'), token_type: 'Bearer', expires_in: 3600 }
}

export function sendJson(res: ServerResponse, value: unknown, status = 200): void {
  res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}

export const silent: Log = { debug() {}, info() {}, warn() {}, error() {}, announce() {} }
