// A real OpenID Provider for the bench, with ten claims at UserInfo and many clients. It signs in
// the next person at each sign-in, without a page. It runs in the process of the bench.
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Adapter, AdapterPayload, KoaContextWithOIDC } from 'oidc-provider'
import { claimNames, furtherClaimName, manyClaimsOf, personOf, subOf } from './people.ts'

export interface BenchClient {
  readonly client_id: string
  readonly client_secret: string
  readonly redirect_uri: string
  /** How many claims UserInfo has for it. Absent: ten. */
  readonly claims?: number
  /** The lifetime of its access tokens. Absent: a day. */
  readonly tokenSeconds?: number
}

export interface BenchProvider {
  readonly issuer: string
  register(client: BenchClient): void
  /**
   * A Logout Token for the last session of a person at a client, or for the given `sid`.
   * @throws {Error} when there is no such session
   */
  logoutToken(client_id: string, person: number, sid?: string): Promise<string>
  /** The time in ms that its responses took so far, added up. */
  respondingMs(): number
  close(): void
}

const mostClaims = 200
const furtherThanSub = [
  ...claimNames.slice(1),
  ...Array.from({ length: mostClaims - claimNames.length }, (_, n) => furtherClaimName(claimNames.length + n)),
]

export async function startProvider(): Promise<BenchProvider> {
  const server = createServer({ keepAliveTimeout: 60_000 })
  await once(server.listen(0, '127.0.0.1', 4096), 'listening')
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { default: Provider } = await import('oidc-provider')
  const entries = new Map<string, AdapterPayload>()
  const sessionIds = new Map<string, string>()
  const sids = new Map<string, string>()
  const clients = new Map<string | undefined, Pick<BenchClient, 'claims' | 'tokenSeconds'>>()
  const provider = new Provider(issuer, {
    adapter: (model: string) => adapterOf(model, { entries, sessionIds, sids }),
    jwks: { keys: [signingKey()] },
    claims: { openid: ['sub'], email: ['email'], profile: furtherThanSub },
    scopes: ['openid', 'profile', 'email', 'offline_access'],
    pkce: { required: () => true },
    rotateRefreshToken: true,
    issueRefreshToken: async () => true,
    expiresWithSession: async () => false,
    interactions: { url: (_ctx, { uid }) => `/oauth/as/${uid}` },
    findAccount: ({ oidc }, sub) => ({
      accountId: sub,
      claims: (use) => {
        const count = clients.get(oidc.client?.clientId)?.claims ?? claimNames.length
        return use === 'userinfo' ? { ...manyClaimsOf(personOf(sub), count), sub } : { sub }
      },
    }),
    loadExistingGrant: async ({ oidc }: KoaContextWithOIDC) => {
      const grant = new provider.Grant({
        clientId: oidc.client?.clientId ?? '',
        accountId: oidc.session?.accountId ?? '',
      })
      grant.addOIDCScope('openid profile email offline_access')
      await grant.save()
      return grant
    },
    routes: {
      authorization: '/oauth/authorize',
      token: '/oauth/token',
      userinfo: '/oauth/userinfo',
      jwks: '/oauth/jwks',
      end_session: '/oauth/logout',
      revocation: '/oauth/revoke',
    },
    cookies: { keys: ['bench'], long: { path: '/oauth' }, short: { path: '/oauth' } },
    ttl: {
      AccessToken: (_ctx, _token, client) => clients.get(client.clientId)?.tokenSeconds ?? 86_400,
      IdToken: 86_400,
      Session: 86_400,
      Grant: 86_400,
      RefreshToken: 86_400,
      Interaction: 600,
    },
    features: { devInteractions: { enabled: false }, backchannelLogout: { enabled: true } },
    renderError: (ctx, out) => void (ctx.body = out),
  })
  let people = 0
  let respondingMs = 0
  const response = provider.callback()
  server.on('request', (req, res) => {
    const startedAt = performance.now()
    res.once('finish', () => (respondingMs += performance.now() - startedAt))
    if (!req.url?.startsWith('/oauth/as/')) return void response(req, res)
    people += 1
    const login = { accountId: subOf(people) }
    const finished = provider.interactionFinished(req, res, { login }, { mergeWithLastSubmission: false })
    finished.catch((error: unknown) => res.writeHead(500).end(String(error)))
  })
  return {
    issuer,
    register: ({ redirect_uri, claims, tokenSeconds, ...client }) => {
      clients.set(client.client_id, { ...(claims && { claims }), ...(tokenSeconds && { tokenSeconds }) })
      entries.set(`Client:${client.client_id}`, {
        ...client,
        redirect_uris: [redirect_uri],
        // So that ID Tokens have a `sid`. The provider itself sends no Logout Tokens.
        backchannel_logout_uri: redirect_uri,
        backchannel_logout_session_required: true,
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: 'client_secret_basic',
        id_token_signed_response_alg: 'RS256',
      })
    },
    logoutToken: async (client_id, person, sid = sids.get(`${client_id} ${subOf(person)}`)) => {
      const client = await provider.Client.find(client_id)
      if (client === undefined || sid === undefined) throw new Error(`${subOf(person)} has no session at ${client_id}`)
      const token = new provider.IdToken({}, { client })
      token.set('sub', subOf(person))
      token.set('sid', sid)
      token.set('jti', randomBytes(16).toString('base64url'))
      token.set('events', { 'http://schemas.openid.net/event/backchannel-logout': {} })
      return token.issue({ use: 'logout' })
    },
    respondingMs: () => respondingMs,
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** The data of the provider while the bench runs. Ten thousand people must fit. */
interface Data {
  readonly entries: Map<string, AdapterPayload>
  /** By the `uid` of a session. */
  readonly sessionIds: Map<string, string>
  /** By client and `sub`. */
  readonly sids: Map<string, string>
}

function adapterOf(model: string, { entries, sessionIds, sids }: Data): Adapter {
  const key = (id: string) => `${model}:${id}`
  return {
    upsert: async (id, payload) => {
      entries.set(key(id), payload)
      if (payload.uid === undefined || model !== 'Session') return
      sessionIds.set(payload.uid, id)
      for (const [client_id, { sid }] of Object.entries(payload.authorizations ?? {}))
        if (sid !== undefined) sids.set(`${client_id} ${payload.accountId}`, sid)
    },
    find: async (id) => entries.get(key(id)),
    findByUid: async (uid) => entries.get(key(sessionIds.get(uid) ?? '')),
    findByUserCode: async () => undefined,
    consume: async (id) => {
      const payload = entries.get(key(id))
      if (payload) entries.set(key(id), { ...payload, consumed: Math.floor(Date.now() / 1000) })
    },
    destroy: async (id) => void entries.delete(key(id)),
    revokeByGrantId: async () => {},
  }
}

function signingKey() {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const kid = randomBytes(8).toString('base64url')
  return { ...privateKey.export({ format: 'jwk' }), kty: 'RSA' as const, kid, use: 'sig', alg: 'RS256' }
}
