import assert from 'node:assert/strict'
import { createPrivateKey, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { copyFileSync, mkdtempSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test, type TestContext } from 'node:test'
import { decodeJwt, SignJWT } from 'jose'
import { startDemoUpstream } from '../../examples/demo/upstream.ts'
import { Browser, type Visit } from '../support/browser.ts'
import { hasPassed, judgeOnlyUnlessBusy } from '../support/busy-verdict.ts'
import { clientKeyPair } from '../support/client-keys.ts'
import { folderWith } from '../support/command-line.ts'
import { startCommand } from '../support/command.ts'
import { goOn } from '../support/form-browser.ts'
import { freePort } from '../support/free-port.ts'
import { basic, send } from '../support/key-world.ts'
import { formsOf, sendForm } from '../support/session-page.ts'
import type { Json } from '../support/signing-provider.ts'
import { until } from '../support/until.ts'
import { runReplica, secrets, type Replica } from '../support/world.ts'
import { person, startKeycloak, type Keycloak, type Realm } from './keycloak.ts'

// Sign-in, refresh and every way in which a session ends, against a real Keycloak. Run by `npm run
// test:keycloak`.
const { note } = judgeOnlyUnlessBusy()
let keycloak: Keycloak
before(async () => {
  keycloak = await startKeycloak(process.env['KEYCLOAK_HOME'] ?? '').catch((error: unknown) => {
    note('Keycloak starts')
    throw error
  })
})
after(() => keycloak.stop())

interface KeycloakWorld {
  readonly realm: Realm
  readonly url: string
  readonly replica: Replica
  /** Moves the gateway's clock; milliseconds that are added to the real time. */
  moveClock(ms: number): void
  isSignedIn(browser: Browser): Promise<boolean>
  /** The session's end in the log: what `by` says. */
  endedBy(): readonly unknown[]
}

/** A realm, an application and a gateway between them. */
async function startKeycloakWorld(
  t: TestContext,
  {
    realmSettings = {},
    client = {},
    attributes = () => ({}),
    credentials = 'client_secret: { env: CLIENT_SECRET }',
    providerSettings = '',
    sessionSettings = '',
    upstreamSettings = '',
    moreHeaders = '',
  }: {
    readonly realmSettings?: Json
    readonly client?: Json
    /** More attributes of the client. */
    readonly attributes?: (url: string) => Json
    /** YAML of the client's credentials, on one line. */
    readonly credentials?: string
    readonly providerSettings?: string
    readonly sessionSettings?: string
    readonly upstreamSettings?: string
    /** After those about the person, such as `, X-Sub: sub`. */
    readonly moreHeaders?: string
  } = {},
): Promise<KeycloakWorld> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const realm = await keycloak.createRealm(
    {
      clientId: 'orders',
      secret: secrets.CLIENT_SECRET,
      redirectUris: [`${url}/.gatehouse/callback`],
      frontchannelLogout: false,
      attributes: {
        'backchannel.logout.url': `${url}/.gatehouse/backchannel-logout`,
        'backchannel.logout.session.required': 'true',
        'post.logout.redirect.uris': `${url}/.gatehouse/signed-out`,
        ...attributes(url),
      },
      ...client,
    },
    realmSettings,
  )
  const upstream = await startDemoUpstream({ host: '127.0.0.1', port: 0 })
  t.after(() => upstream.close())
  let moved = 0
  let replica: Replica | undefined
  // First, before the configuration is deleted.
  t.after(() => {
    if (replica !== undefined && !hasPassed(t)) keepLogs(t, replica)
  })
  replica = await runReplica(
    t,
    `version: 1
listen: 127.0.0.1:${port}
external_url: ${url}
shutdown: { drain_timeout: 500ms }
provider:
  issuer: ${realm.issuer}
  client_id: orders
  ${credentials}
  ${providerSettings}
session:
  keys: [{ env: SESSION_KEY }]
  store: memory
  ${sessionSettings}
upstreams:
  orders:
    url: ${upstream.url.origin}
    headers: { X-Remote-User: preferred_username, X-Email: email${moreHeaders} }
    ${upstreamSettings}
`,
    { now: () => Date.now() + moved },
  )
  return {
    ...{ realm, url, replica },
    moveClock: (ms) => void (moved += ms),
    isSignedIn: async (browser) => (await browser.fetch(`${url}/echo`)).status === 200,
    endedBy: () => replica.log.filter(({ message }) => message === 'session.ended').map(({ fields }) => fields['by']),
  }
}

/** Keeps what helps to understand why a test has failed. */
function keepLogs(t: TestContext, { file, log }: Replica): void {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-keycloak-failed-'))
  copyFileSync(file, join(folder, 'gateway.yaml'))
  writeFileSync(join(folder, 'gateway.log'), log.map((line) => `${JSON.stringify(line)}\n`).join(''))
  writeFileSync(join(folder, 'keycloak.log'), keycloak.output())
  t.diagnostic(`The configuration and the logs of the gateway and of Keycloak are in ${folder}`)
}

/** Opens the application and signs in at Keycloak's page. */
async function signIn(browser: Browser, { url }: Pick<KeycloakWorld, 'url'>): Promise<Visit> {
  const page = await browser.get(`${url}/echo`)
  const { username, password } = person
  return submit(browser, page, { username, password })
}

/** Submits the form of a page. */
function submit(browser: Browser, page: Visit, fields: Readonly<Record<string, string>>): Promise<Visit> {
  const [form = ''] = /<form[^]*?<\/form>/.exec(page.body) ?? []
  const action = /action="([^"]+)"/.exec(form)?.[1]?.replaceAll('&amp;', '&')
  assert.ok(action !== undefined, `no form at ${page.url}: ${page.status} ${page.body.slice(0, 2000)}`)
  const hidden = [...form.matchAll(/<input[^>]*type="hidden"[^>]*>/g)].map(([input]): [string, string] => [
    /name="([^"]*)"/.exec(input)?.[1] ?? '',
    /value="([^"]*)"/.exec(input)?.[1] ?? '',
  ])
  return browser.get(new URL(action, page.url).href, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams([...hidden, ...Object.entries(fields)]).toString(),
  })
}

test('the gateway authenticates with the token of its platform, and Keycloak has no secret of it', async (t) => {
  const platform = { iss: 'https://cluster.example.com', sub: 'system:serviceaccount:orders:gatehouse' }
  const pair = clientKeyPair('ES256')
  const keys = createServer((_req, res) => void res.end(JSON.stringify({ keys: [pair.publicJwk] }))).listen(
    0,
    '127.0.0.1',
  )
  await once(keys, 'listening')
  t.after(() => void keys.close())
  const token = join(folderWith(t, {}), 'token')
  const world = await startKeycloakWorld(t, {
    client: { clientAuthenticatorType: 'federated-jwt', secret: undefined },
    attributes: () => ({ 'jwt.credential.issuer': 'cluster', 'jwt.credential.sub': platform.sub }),
    credentials: `client_assertion: { file: ${token} }`,
  })
  const jwksUrl = `http://127.0.0.1:${(keys.address() as AddressInfo).port}/keys`
  await world.realm.admin('POST', '/identity-provider/instances', {
    ...{ alias: 'cluster', providerId: 'oidc', enabled: true, hideOnLogin: true },
    config: {
      ...{ issuer: platform.iss, jwksUrl, useJwksUrl: 'true', validateSignature: 'true' },
      ...{ supportsClientAssertions: 'true', supportsClientAssertionReuse: 'true' },
      ...{ clientId: 'unused', clientSecret: 'unused', authorizationUrl: jwksUrl, tokenUrl: jwksUrl },
    },
  })
  const jwt = await new SignJWT({ jti: randomUUID() })
    .setProtectedHeader({ alg: 'ES256', kid: 'key-ES256' })
    .setIssuer(platform.iss)
    .setSubject(platform.sub)
    .setAudience(world.realm.issuer)
    .setIssuedAt()
    .setExpirationTime('4m')
    .sign(createPrivateKey({ key: pair.privateJwk, format: 'jwk' }))
  writeFileSync(token, jwt)
  const jane = new Browser('jane')

  const page = await signIn(jane, world)

  assert.equal(page.status, 200, `${page.body.slice(-500)} ${JSON.stringify(world.replica.log)}`)
  assert.match(page.body, /jane@example\.com/)
})

test('a person signs in, and the application learns who it is', async (t) => {
  const world = await startKeycloakWorld(t)
  const jane = new Browser('jane')

  const page = await signIn(jane, world)

  assert.equal(page.status, 200)
  assert.match(page.body, /jane@example\.com/)
  assert.equal((await world.realm.sessions()).length, 1)
  assert.deepEqual(
    world.replica.log.filter(({ level }) => level === 'warn'),
    [],
  )
})

test('an administrator signs the person out: the Logout Token ends the session', async (t) => {
  const world = await startKeycloakWorld(t)
  const jane = new Browser('jane')
  await signIn(jane, world)

  await world.realm.admin('POST', `/users/${world.realm.userId}/logout`)

  await until('the session has ended', async () => !(await world.isSignedIn(jane)))
  assert.deepEqual(world.endedBy(), ['provider'])
})

test('an administrator ends one of two sessions: the other one goes on', async (t) => {
  const world = await startKeycloakWorld(t)
  const [phone, laptop] = [new Browser('jane'), new Browser('jane')]
  await signIn(phone, world)
  const [first] = await world.realm.sessions()
  await signIn(laptop, world)

  await world.realm.admin('DELETE', `/sessions/${first?.id}`)

  await until('the session has ended', async () => !(await world.isSignedIn(phone)))
  assert.equal(await world.isSignedIn(laptop), true)
})

test('the person signs out at Keycloak, of the account console: the Logout Token ends the session', async (t) => {
  const world = await startKeycloakWorld(t)
  const jane = new Browser('jane')
  await signIn(jane, world)

  const question = await jane.get(`${world.realm.issuer}/protocol/openid-connect/logout?client_id=account-console`)
  await submit(jane, question, { confirmLogout: 'Logout' })

  await until('the session has ended', async () => !(await world.isSignedIn(jane)))
  assert.deepEqual(world.endedBy(), ['provider'])
  assert.equal((await world.realm.sessions()).length, 0)
})

test('the person signs out here: Keycloak asks nothing and sends the browser back', async (t) => {
  const world = await startKeycloakWorld(t)
  const jane = new Browser('jane')
  await signIn(jane, world)

  const page = await jane.get(`${world.url}/.gatehouse/sign-out`)

  assert.equal(new URL(page.url).pathname, '/.gatehouse/signed-out')
  assert.equal((await world.realm.sessions()).length, 0)
  assert.match((await jane.get(`${world.url}/echo`)).url, /\/protocol\/openid-connect\/auth/)
})

test('a person in 200 groups signs out here: a form takes the long ID Token to Keycloak', async (t) => {
  const groups = Array.from({ length: 200 }, (_, at) => `00000000-0000-4000-8000-${String(at).padStart(12, '0')}`)
  const config = {
    'claim.name': 'groups',
    'claim.value': JSON.stringify(groups),
    'jsonType.label': 'JSON',
    'id.token.claim': 'true',
  }
  const mapper = { name: 'groups', protocol: 'openid-connect', protocolMapper: 'oidc-hardcoded-claim-mapper', config }
  const world = await startKeycloakWorld(t, { client: { protocolMappers: [mapper] } })
  const jane = new Browser('jane')
  await signIn(jane, world)

  const form = await jane.get(`${world.url}/.gatehouse/sign-out`)
  assert.match(form.body, /name="id_token_hint" value="[^"]{8000,}"/)
  const page = await submit(jane, form, {})

  assert.equal(new URL(page.url).pathname, '/.gatehouse/signed-out')
  assert.equal((await world.realm.sessions()).length, 0)
})

test('a script signs out here: the session at Keycloak ends', async (t) => {
  const world = await startKeycloakWorld(t)
  const jane = new Browser('jane')
  await signIn(jane, world)

  const response = await jane.fetch(`${world.url}/.gatehouse/sign-out`, { method: 'POST' })

  assert.equal(response.status, 200)
  t.diagnostic(`POST sign-out: ${response.body}`)
  await until('the session at Keycloak has ended', async () => (await world.realm.sessions()).length === 0)
})

test('tokens are refreshed, and the session goes on', async (t) => {
  const world = await startKeycloakWorld(t, { realmSettings: { accessTokenLifespan: 60 } })
  const jane = new Browser('jane')
  await signIn(jane, world)

  world.moveClock(61_000)

  assert.equal(await world.isSignedIn(jane), true)
  assert.equal(world.replica.log.filter(({ message }) => message === 'session.refreshed').length, 1)
})

test('Keycloak encrypts: a person signs in, tokens are refreshed, and a Logout Token ends the session', async (t) => {
  const [alg, enc] = ['RSA-OAEP-256', 'A256GCM']
  const world = await startKeycloakWorld(t, {
    realmSettings: { accessTokenLifespan: 60 },
    attributes: (url) => ({
      ...{ 'use.jwks.url': 'true', 'jwks.url': `${url}/.gatehouse/client-jwks.json` },
      ...{ 'id.token.encrypted.response.alg': alg, 'id.token.encrypted.response.enc': enc },
      'user.info.response.signature.alg': 'RS256',
      ...{ 'user.info.encrypted.response.alg': alg, 'user.info.encrypted.response.enc': enc },
      ...{ 'authorization.encrypted.response.alg': alg, 'authorization.encrypted.response.enc': enc },
    }),
    providerSettings: ['id_token', 'userinfo', 'authorization']
      .flatMap((kind) => [`${kind}_encrypted_response_alg: ${alg}`, `${kind}_encrypted_response_enc: ${enc}`])
      .concat('userinfo_signed_response_alg: RS256', 'response_mode: jwt')
      .join('\n  '),
  })
  const jane = new Browser('jane')
  assert.equal((await signIn(jane, world)).status, 200, JSON.stringify(world.replica.log))

  world.moveClock(61_000)
  assert.equal(await world.isSignedIn(jane), true, JSON.stringify(world.replica.log))
  assert.equal(world.replica.log.filter(({ message }) => message === 'session.refreshed').length, 1)
  world.moveClock(-61_000)

  await world.realm.admin('POST', `/users/${world.realm.userId}/logout`)
  await until('the session has ended', async () => !(await world.isSignedIn(jane)))
  assert.deepEqual(world.endedBy(), ['provider'])
})

for (const [what, audience, status] of [
  ['gets a token for itself, in exchange for that of the person', 'billing', 200],
  ['gets nothing when Keycloak refuses the exchange', 'payroll', 502],
] as const)
  test(`an application ${what}`, async (t) => {
    const mapper = {
      ...{ name: 'audience-of-billing', protocol: 'openid-connect', protocolMapper: 'oidc-audience-mapper' },
      config: { 'included.custom.audience': 'billing', 'access.token.claim': 'true' },
    }
    const world = await startKeycloakWorld(t, {
      client: { protocolMappers: [mapper] },
      attributes: () => ({ 'standard.token.exchange.enabled': 'true' }),
      upstreamSettings: `token_exchange: { audience: ${audience} }`,
      moreHeaders: ', Authorization: { bearer: exchanged_token }',
    })
    // Keycloak knows both, and the person may use one of them.
    for (const clientId of ['billing', 'payroll'])
      await world.realm.admin('POST', '/clients', { clientId, protocol: 'openid-connect' })

    const page = await signIn(new Browser('jane'), world)

    assert.equal(page.status, status)
    const [, token] = /Bearer ([\w.-]+)/.exec(page.body) ?? []
    const { aud, azp } = token === undefined ? {} : (decodeJwt(token) as { aud?: unknown; azp?: unknown })
    assert.deepEqual([aud, azp], status === 200 ? ['billing', 'orders'] : [undefined, undefined])
  })

test('a session that expires at Keycloak ends here at the next refresh', async (t) => {
  const world = await startKeycloakWorld(t, { realmSettings: { accessTokenLifespan: 60 } })
  const jane = new Browser('jane')
  await signIn(jane, world)
  const expiresAt = Date.now() + 2_000
  await world.realm.admin('PUT', '', { ssoSessionMaxLifespan: 1 })
  await until('the session has expired at Keycloak', () => Date.now() > expiresAt)

  world.moveClock(61_000)
  assert.equal(await world.isSignedIn(jane), false)

  // Some versions notice the expiry when they are asked for new tokens, and send a Logout Token
  // before they refuse them.
  const [by] = world.endedBy()
  assert.ok(by === 'invalid_grant' || by === 'provider', String(by))
})

test('with offline_access the log warns of the offline session', async (t) => {
  const world = await startKeycloakWorld(t, { providerSettings: 'scopes: [openid, profile, email, offline_access]' })
  const jane = new Browser('jane')

  await signIn(jane, world)

  const warnings = world.replica.log.filter(({ level }) => level === 'warn')
  assert.deepEqual(
    warnings.map(({ message }) => message),
    ['provider.offline_session'],
  )
  await world.realm.admin('POST', `/users/${world.realm.userId}/logout`)
  t.diagnostic(`still signed in after an administrator's logout: ${await world.isSignedIn(jane)}`)
})

test('keys outlive the sign-out, one ends alone, and a disabled account ends the other', async (t) => {
  const world = await startKeycloakWorld(t, {
    realmSettings: { accessTokenLifespan: 60 },
    sessionSettings: 'page: true',
    upstreamSettings: 'keys: {}\n    rules: [{ path: /echo, keys: true }]',
  })
  const jane = new Browser('jane')
  await signIn(jane, world)
  const page = `${world.url}/.gatehouse/sessions`
  const make = async (name: string) => {
    const form = formsOf(await jane.get(page)).find(({ button }) => button === 'Make a key')
    assert.ok(form)
    const made = await goOn(
      jane,
      await sendForm(jane, { ...form, fields: { ...form.fields, name, upstream: 'orders' } }),
    )
    return /ghk_[\w-]{64}/.exec(made.body)?.[0] ?? assert.fail(`${made.body} ${JSON.stringify(world.replica.log)}`)
  }
  const statusOf = async (key: string) => (await send(`${world.url}/echo`, basic(key))).status
  const [calendar, backup] = [await make('calendar'), await make('backup')]

  // The end of one key revokes no token of the other.
  const end = formsOf(await jane.get(page)).find(({ button }) => button === 'End the key backup')
  await sendForm(jane, end ?? assert.fail())
  assert.equal(await statusOf(backup), 401)
  await jane.get(`${world.url}/.gatehouse/sign-out`, { headers: { 'sec-fetch-site': 'same-origin' } })
  await until('the session has ended at Keycloak', async () => (await world.realm.sessions()).length === 0)
  world.moveClock(61_000)
  assert.equal(await statusOf(calendar), 200, JSON.stringify(world.replica.log))

  await world.realm.admin('PUT', `/users/${world.realm.userId}`, { enabled: false })
  world.moveClock(61_000)
  assert.equal(await statusOf(calendar), 401, JSON.stringify(world.replica.log))
})

test('gatehouse register makes a client with which people sign in, and its registration can be compared and changed', async (t) => {
  const realm = await keycloak.createRealm({ clientId: 'other', redirectUris: [] })
  const { token } = (await realm.admin('POST', '/clients-initial-access', { count: 1, expiration: 600 })) as Json
  const upstream = await startDemoUpstream({ host: '127.0.0.1', port: 0 })
  t.after(() => upstream.close())
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const cwd = folderWith(t, {
    token: String(token),
    'gateway.yaml': `version: 1
listen: 127.0.0.1:${port}
external_url: ${url}
provider:
  issuer: ${realm.issuer}
  client_id: unregistered
  client_secret: { file: client_secret }
upstreams:
  orders: { url: "${upstream.url.origin}" }
`,
  })
  const run = async (...args: readonly string[]) => {
    const command = startCommand(t, [...args], { cwd })
    return [await command.ended, command.out() + command.err()] as const
  }

  const [code, said] = await run('register', '--token', 'token', '--write')
  assert.equal(code, 0, said)
  const gateway = startCommand(t, ['run'], { cwd })
  await gateway.said('gatehouse is ready')
  const jane = new Browser('jane')
  assert.equal((await signIn(jane, { url })).status, 200)
  const [same, found] = await run('check', '--registration')
  assert.equal(same, 0, found)
  const [updated, told] = await run('register', '--update')
  assert.equal(updated, 0, told)
})
