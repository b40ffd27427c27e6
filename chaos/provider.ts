// The OpenID Provider of a chaos run. It records each use of a refresh token.
import { generateKeyPairSync } from 'node:crypto'
import { importJWK, type JWTPayload, SignJWT } from 'jose'
import { errors, type Provider } from 'oidc-provider'
import { ProviderStore } from '../examples/demo/provider-store.ts'
import { startDemoProvider, type DemoProvider } from '../examples/demo/provider.ts'
import { randomToken, sha256 } from '../src/core/random.ts'
import { freePort } from '../test/support/free-port.ts'
import type { Scope } from '../test/support/redis.ts'
import { type HistoryEvent, type Identity, now } from './history.ts'
import type { Network } from './network.ts'
import { timeouts } from './parties.ts'

/** The `aud` of access tokens for the gateway, of tokens in exchange, and of security events. */
export const audiences = {
  calls: 'https://calls.example.com',
  api: 'api',
  signals: 'https://signals.example.com',
} as const

export interface ChaosProvider extends Pick<DemoProvider, 'issuer' | 'sessions' | 'expireSession' | 'logoutToken'> {
  /** An access token for a program that acts for a person. */
  accessToken(about: Identity, lifetimeMs: number): Promise<string>
  /** A security event that ends a session or, without `sid`, all sessions of a person. */
  securityEvent(about: { readonly sub: string; readonly sid?: string }): Promise<string>
  /** The person of the ID Token that was issued for an authorization code. */
  issuedFor(code: string): Identity | undefined
  /** Signs with a new key from now on. Earlier keys remain published. */
  rotateKeys(): Promise<void>
}

export interface ProviderParts {
  readonly network: Network
  readonly record: (event: HistoryEvent) => void
  readonly url: string
  readonly client_secret: string
  readonly people: readonly string[]
}

export async function startChaosProvider(scope: Scope, parts: ProviderParts): Promise<ChaosProvider> {
  const { network, url, client_secret } = parts
  const store = new ProviderStore()
  const grants: Grants = { issued: new Map(), sources: new Map(), programs: new Map() }
  const port = await freePort()
  const issuer = new URL(`http://${network.host('provider')}:${port}`)
  const cookieKeys = [randomToken(32)]
  const keys = [newKey()]
  /** One that is published already. */
  let signing = keys[0] as SigningKey
  const sign = async (payload: JWTPayload, typ: string) => {
    const { kid, alg } = signing
    const token = new SignJWT({ iss: issuer.origin, jti: randomToken(16), ...payload }).setIssuedAt()
    return token.setProtectedHeader({ alg, kid, typ }).sign(await importJWK(signing, alg))
  }
  const accessToken = async ({ sub, sid }: Identity, lifetimeMs: number) => {
    const exp = Math.floor((Date.now() + lifetimeMs) / 1000)
    const token = await sign({ sub, sid, exp, aud: audiences.calls, client_id: 'program' }, 'at+jwt')
    grants.programs.set(sha256(token), sub)
    return token
  }
  const exchange = async (sub: string) => {
    const exp = Math.floor(Date.now() / 1000) + exchangedSeconds
    return sign({ sub, exp, aud: audiences.api, client_id: 'orders' }, 'at+jwt')
  }
  const start = () =>
    startDemoProvider({
      ...{ issuer, client_id: 'orders', client_secret, host: '127.0.0.1', port: 0, store },
      redirect_uris: [`${url}/.gatehouse/callback`],
      post_logout_redirect_uris: [`${url}/.gatehouse/signed-out`],
      backchannel_logout_uri: `${url}/.gatehouse/backchannel-logout`,
      people: parts.people.map((sub) => ({
        ...{ sub, email: `${sub}@example.com`, given_name: sub, family_name: 'Doe' },
        fields: { costCentre: '1', employeeNumber: '1', groups: [] },
      })),
      adjust: (configuration) => ({
        ...configuration,
        clients: configuration.clients?.map((client) => ({
          ...client,
          grant_types: [...(client.grant_types ?? []), exchangeGrant],
        })),
        cookies: { ...configuration.cookies, keys: cookieKeys },
        jwks: { keys: [...keys] },
        ttl: { ...configuration.ttl, AccessToken: timeouts.accessToken / 1000 },
      }),
      extend: (oidc) => {
        recordGrants(oidc, parts, grants)
        exchangeTokens(oidc, grants, exchange)
      },
    })
  let running = await start()
  const link = await network.link('provider', port, Number(running.address.port))
  scope.after(() => running.close())
  return {
    issuer: running.issuer,
    sessions: () => running.sessions(),
    expireSession: (sid) => running.expireSession(sid),
    logoutToken: (about) => running.logoutToken(about),
    accessToken,
    securityEvent: ({ sub, sid }) => {
      const user = { format: 'iss_sub', iss: issuer.origin, sub }
      const session = { format: 'complex', user, session: { format: 'opaque', id: sid } }
      const type = sid === undefined ? 'risc/event-type/account-disabled' : 'caep/event-type/session-revoked'
      const events = { [`https://schemas.openid.net/secevent/${type}`]: {} }
      return sign({ aud: audiences.signals, sub_id: sid === undefined ? user : session, events }, 'secevent+jwt')
    },
    issuedFor: (code) => grants.issued.get(code),
    rotateKeys: async () => {
      keys.unshift(newKey())
      const earlier = running
      running = await start()
      link.target = Number(running.address.port)
      signing = keys[0] as SigningKey
      // Requests under way are completed; both have the same data.
      void earlier.close()
    },
  }
}

type SigningKey = ReturnType<typeof newKey>

function newKey() {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  return { ...privateKey.export({ format: 'jwk' }), kty: 'RSA' as const, kid: randomToken(8), use: 'sig', alg: 'RS256' }
}

/** How long an exchanged token lives. */
const exchangedSeconds = 40
const exchangeGrant = 'urn:ietf:params:oauth:grant-type:token-exchange'

/** Exchanges the access tokens of sessions and of programs (RFC 8693). */
function exchangeTokens(oidc: Provider, { programs }: Grants, exchange: (sub: string) => Promise<string>): void {
  oidc.registerGrantType(
    exchangeGrant,
    async (ctx) => {
      const subject = String(ctx.oidc.params?.['subject_token'])
      const sub = programs.get(sha256(subject)) ?? (await oidc.AccessToken.find(subject))?.accountId
      if (sub === undefined) throw new errors.InvalidRequest('unknown subject_token')
      ctx.body = {
        ...{ access_token: await exchange(sub), token_type: 'Bearer', expires_in: exchangedSeconds },
        issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      }
    },
    ['subject_token', 'subject_token_type', 'audience'],
  )
}

/** How long after a response the link must still be in order for it to have arrived, in ms. */
const arrivalMs = 100

/** What the provider has issued. */
interface Grants {
  /** By authorization code. */
  readonly issued: Map<string, Identity>
  /** By the hash of a refresh token or an access token. */
  readonly sources: Map<string, Source>
  /** The `sub` of access tokens of programs, by their hash. */
  readonly programs: Map<string, string>
}

interface Source {
  readonly sid: string
  /** See `Refresh`. */
  readonly grant: string
}

function recordGrants(oidc: Provider, { network, record }: ProviderParts, { issued, sources }: Grants): void {
  oidc.use(async (ctx, next) => {
    const begin = now()
    await next()
    if (ctx.path === '/oauth/userinfo') {
      const { grant } = sources.get(sha256(ctx.get('authorization').replace(/^Bearer /, ''))) ?? {}
      if (grant !== undefined) record({ type: 'claims-read', at: now(), grant })
    }
    if (ctx.path !== '/oauth/token') return
    const { grant_type, code = '', refresh_token = '' } = ctx.oidc.params as Record<string, string | undefined>
    const accepted = ctx.status === 200
    const response = (ctx.body ?? {}) as Partial<
      Record<'id_token' | 'refresh_token' | 'access_token' | 'error', string>
    >
    const isRejected = response.error === 'invalid_grant'
    if (grant_type === 'authorization_code' && response.id_token !== undefined)
      issued.set(code, identityIn(response.id_token))
    const [token, next_token] = [sha256(refresh_token), response.refresh_token && sha256(response.refresh_token)]
    const source = code === '' ? sources.get(token) : { sid: issued.get(code)?.sid ?? '', grant: sha256(code) }
    if (next_token !== undefined && source !== undefined) sources.set(next_token, source)
    if (response.access_token !== undefined && source !== undefined) sources.set(sha256(response.access_token), source)
    if (grant_type !== 'refresh_token') return
    const replica = network.nameOf(ctx.req.socket.remoteAddress)
    ctx.res.once('close', () => {
      const [end, isWritten] = [now(), ctx.res.writableFinished && !network.isTroubled(replica, 'provider')]
      setTimeout(() => {
        const answered = isWritten && !network.isTroubled(replica, 'provider')
        record({
          ...{ type: 'refresh', begin, end, token, replica, accepted, isRejected, answered, sid: '', ...source },
          ...(next_token !== undefined && { next: next_token }),
        })
      }, arrivalMs)
    })
  })
}

function identityIn(id_token: string): Identity {
  const payload = JSON.parse(Buffer.from(id_token.split('.')[1] ?? '', 'base64url').toString()) as Identity
  return { sub: payload.sub, sid: payload.sid }
}
