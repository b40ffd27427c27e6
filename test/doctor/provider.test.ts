import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { providerFindings } from '../../packages/doctor/provider.ts'
import { registrationOf } from '../../src/config/registration.ts'
import { examineProvider } from '../../src/provider/examine.ts'
import { clientKeyPair, platformJwt } from '../support/client-keys.ts'
import { folderWith } from '../support/command-line.ts'
import { freePort } from '../support/free-port.ts'
import { inTime } from '../support/in-time.ts'
import { startProvider, type TestProvider, type TestProviderOptions } from '../support/provider.ts'
import { assertUseful, configOf, finding, secrets } from './support.ts'

const externalUrl = 'https://orders.example.com'
const metadataPath = '/.well-known/openid-configuration'

function provider(t: TestContext, options: Partial<TestProviderOptions> = {}): Promise<TestProvider> {
  return startProvider(t, {
    client_id: 'orders',
    client_secret: secrets.CLIENT_SECRET,
    redirect_uris: [`${externalUrl}/.gatehouse/callback`],
    post_logout_redirect_uris: [`${externalUrl}/.gatehouse/signed-out`],
    backchannel_logout_uri: `${externalUrl}/.gatehouse/backchannel-logout`,
    ...options,
  })
}

/** Adds these header fields to each response of the provider. */
function respondWith(fault: TestProvider['fault'], fields: () => Readonly<Record<string, string>>): void {
  for (const path of [metadataPath, '/oauth/jwks', '/oauth/token', '/oauth/authorize'])
    fault(path, (_req, res, pass) => {
      const write = res.writeHead.bind(res) as (...args: unknown[]) => typeof res
      res.writeHead = ((status: number, headers: Record<string, unknown>) =>
        write(status, { ...headers, ...fields() })) as typeof res.writeHead
      pass()
    })
}

async function findingsAbout(
  t: TestContext,
  issuer: string,
  settings = '',
  headers = '{}',
  rules = '[]',
  page = false,
) {
  const upstream = `url: http://127.0.0.1:3000\n    headers: ${headers}\n    rules: ${rules}`
  const config = configOf(t, { externalUrl, issuer, provider: settings, upstream, page })
  const [provider] = config.providers
  const facts = await examineProvider(provider, registrationOf(provider, config).redirect_uris)
  const findings = providerFindings(facts, provider, config.upstreams)
  assertUseful(findings)
  return findings
}

test('A provider without problems has only good findings', async (t) => {
  const { issuer } = await provider(t)

  const findings = await findingsAbout(t, issuer)

  assert.deepEqual(
    findings.map(({ id, level }) => `${id} ${level}`),
    [
      'provider.discovery ok',
      'provider.clock ok',
      'provider.keys ok',
      'provider.pkce ok',
      'provider.scopes ok',
      'provider.backchannel_logout ok',
      'provider.end_session ok',
      'provider.redirect_uri ok',
      'provider.client ok',
    ],
    JSON.stringify(findings, null, 1),
  )
})

test('An acr of a rule that the provider does not list is a warning that names those that it lists', async (t) => {
  const { issuer, bend } = await provider(t)
  const rules = '[{ path: /a, step_up: { acr_values: [mfa, phr] } }, { path: /b, step_up: { max_age: 5m } }]'
  const about = async () => finding(await findingsAbout(t, issuer, '', '{}', rules), 'provider.acr')

  const { level, what, todo } = await about()

  assert.equal(level, 'warning')
  assert.match(what, /does not list phr among/)
  assert.match(todo ?? '', /those that it lists: mfa$/)
  bend(metadataPath, (body) => delete body['acr_values_supported'])
  assert.equal((await about()).level, 'ok')
})

test('A provider that cannot issue the refresh tokens of keys is a warning', async (t) => {
  const { issuer, bend } = await provider(t)
  const about = async () => {
    const rules = '[{ path: /a, keys: true }]\n    keys: { acr_values: [phr] }'
    const findings = await findingsAbout(t, issuer, '', '{}', rules, true)
    assert.match(finding(findings, 'provider.acr').what, /does not list phr among/)
    return finding(findings, 'provider.offline_access')
  }

  assert.equal((await about()).level, 'ok')
  bend(metadataPath, (body) => void (body['scopes_supported'] = ['openid']))
  assert.match((await about()).why ?? '', /absolute_timeout/)
  bend(metadataPath, (body) => void (body['grant_types_supported'] = ['authorization_code']))
  assert.equal((await about()).level, 'warning')
})

test('An unreachable provider is a fault, with advice', async (t) => {
  const findings = await findingsAbout(t, `http://127.0.0.1:${await freePort()}`)

  const { level, what, todo } = finding(findings, 'provider.discovery')
  assert.equal(level, 'fault')
  assert.match(what, /ECONNREFUSED/)
  assert.match(todo ?? '', /compare the port with provider\.issuer/)
})

test('A provider that hangs is a fault within the time limit', async (t) => {
  const { issuer, fault } = await provider(t)
  fault(metadataPath, () => {})

  const findings = await inTime(5_000, () => findingsAbout(t, issuer, 'timeout: 300ms'))

  const { what, todo } = finding(findings, 'provider.discovery')
  assert.match(what, /no response within 300 ms/)
  assert.match(todo ?? '', /a firewall/)
})

test('A wrong issuer is a fault that names the issuer of the provider', async (t) => {
  const { issuer, bend } = await provider(t)
  bend(metadataPath, (body) => (body['issuer'] = `${issuer}/realms/staff`))

  const { level, what, todo } = finding(await findingsAbout(t, issuer), 'provider.discovery')

  assert.equal(level, 'fault')
  assert.ok(what.includes(`${issuer}/realms/staff`), what)
  assert.match(todo ?? '', /exactly as the provider does/)
})

test('An issuer without a discovery document is a fault with the usual reason', async (t) => {
  const { issuer } = await provider(t)

  const { what, todo } = finding(await findingsAbout(t, `${issuer}/realms/staff`), 'provider.discovery')

  assert.match(what, /status 404/)
  assert.match(todo ?? '', /realms\/REALM/)
})

test('A server that responds with other JSON is a fault with the form of an issuer', async (t) => {
  const { issuer, fault } = await provider(t)
  fault(metadataPath, (_req, res) => res.writeHead(200, { 'content-type': 'application/json' }).end('{}'))

  const { what, todo } = finding(await findingsAbout(t, issuer), 'provider.discovery')

  assert.match(what, /JSON without an issuer/)
  assert.match(todo ?? '', /realms\/REALM/)
})

test('A provider that cannot be reached through a proxy is a fault that names the proxy', async (t) => {
  const proxy = `http://127.0.0.1:${await freePort()}`
  const config = configOf(t, { settings: `egress_proxy: { url: ${proxy} }` })

  const [provider] = config.providers
  const findings = providerFindings(await examineProvider(provider, []), provider, config.upstreams)

  const { what, todo } = finding(findings, 'provider.discovery')
  assert.ok(what.includes(`through the proxy ${proxy}`), what)
  assert.ok(todo?.includes(`${proxy} (egress_proxy.url)`), todo)
  assert.equal(finding(findings, 'provider.proxy').level, 'ok')
})

for (const [seconds, level] of [
  [-90, 'fault'],
  [90, 'fault'],
  [-20, 'warning'],
  [20, 'warning'],
] as const)
  test(`A clock that differs by ${seconds} s is a ${level}`, async (t) => {
    const { issuer, fault } = await provider(t)
    respondWith(fault, () => ({ date: new Date(Date.now() + seconds * 1000).toUTCString() }))

    const { what, level: found } = finding(await findingsAbout(t, issuer), 'provider.clock')

    assert.equal(found, level, what)
    assert.match(what, seconds < 0 ? /behind the local clock/ : /ahead of the local clock/)
  })

test('The clock of a provider that sends no Date cannot be compared', async (t) => {
  const { issuer, fault } = await provider(t)
  for (const path of [metadataPath, '/oauth/jwks', '/oauth/token', '/oauth/authorize'])
    fault(path, (_req, res, pass) => {
      res.sendDate = false
      const write = res.writeHead.bind(res) as (...args: unknown[]) => typeof res
      res.writeHead = ((status: number, { date: _, ...headers }: Record<string, unknown>) =>
        write(status, headers)) as typeof res.writeHead
      pass()
    })

  assert.match(finding(await findingsAbout(t, issuer), 'provider.clock').what, /sends no Date/)
})

test('Responses from a cache do not distort the clock comparison', async (t) => {
  const { issuer, fault } = await provider(t)
  respondWith(fault, () => ({ date: new Date(Date.now() - 600_000).toUTCString(), age: '600' }))

  const { what, level } = finding(await findingsAbout(t, issuer), 'provider.clock')

  assert.equal(level, 'ok', what)
})

for (const [what, change, id, level] of [
  ['back-channel logout', 'backchannel_logout_supported', 'provider.backchannel_logout', 'warning'],
  ['the session in logout tokens', 'backchannel_logout_session_supported', 'provider.backchannel_logout', 'warning'],
  ['an end-session endpoint', 'end_session_endpoint', 'provider.end_session', 'warning'],
  ['PKCE', 'code_challenge_methods_supported', 'provider.pkce', 'warning'],
] as const)
  test(`A provider that does not announce ${what} is a ${level}`, async (t) => {
    const { issuer, bend } = await provider(t)
    bend(metadataPath, (body) => delete body[change])

    assert.equal(finding(await findingsAbout(t, issuer), id).level, level)
  })

for (const [requirement, setting, said] of [
  ['require_pushed_authorization_requests', 'never', /requires pushed authorization requests: remove/],
  ['require_signed_request_object', 'when_required', /requires signed authorization requests: set/],
] as const)
  test(`A provider with ${requirement} is a fault with settings that do not fit it`, async (t) => {
    const { issuer, bend } = await provider(t)
    bend(metadataPath, (body) => (body[requirement] = true))

    const findings = await findingsAbout(t, issuer, `pushed_authorization_requests: ${setting}`)

    const { level, what } = finding(findings, 'provider.discovery')
    assert.equal(level, 'fault')
    assert.match(what, said)
  })

test('A provider that does not announce DPoP is a warning with provider.dpop', async (t) => {
  const { issuer } = await provider(t)

  const { level, what } = finding(await findingsAbout(t, issuer, 'dpop: true'), 'provider.dpop')

  assert.equal(level, 'warning')
  assert.match(what, /does not list ES256 among its dpop_signing_alg_values_supported/)
})

test('A signature of the client that the provider does not list is a warning', async (t) => {
  const { issuer, bend } = await provider(t)
  bend(metadataPath, (body) => {
    body['token_endpoint_auth_signing_alg_values_supported'] = ['RS256']
    body['request_object_signing_alg_values_supported'] = ['RS256']
  })
  const config = configOf(t, { externalUrl, issuer })
  const { privateJwk } = clientKeyPair('ES256')
  const { kty, crv, x, y, d } = privateJwk as Record<string, string>
  const signing = {
    ...config.providers[0],
    token_endpoint_auth_method: 'private_key_jwt',
    signedRequests: true,
    clientKey: { jwk: { kty, crv, x, y, d } as Record<string, string>, kid: undefined, alg: 'ES256' },
  } as const

  const findings = providerFindings(await examineProvider(signing, []), signing, config.upstreams)

  assertUseful(findings)
  for (const id of ['provider.client_key', 'provider.signed_requests']) {
    const { level, what, todo } = finding(findings, id)
    assert.equal(level, 'warning')
    assert.match(what, /does not list ES256 among its \w+/)
    assert.match(todo ?? '', /RS256/)
  }
  assert.match(finding(findings, 'provider.client').todo ?? '', /client_key/)
})

test('The JWT that authenticates the client is named, and one of another audience or an expired one is found', async (t) => {
  const { issuer } = await provider(t)
  const file = join(folderWith(t, {}), 'token')
  const config = configOf(t, { externalUrl, issuer })
  const client = {
    ...config.providers[0],
    token_endpoint_auth_method: 'private_key_jwt',
    clientAssertion: file,
  } as const
  const facts = await examineProvider(client, [])
  const examine = (claims: object) => {
    writeFileSync(file, platformJwt({ aud: issuer, ...claims }))
    const findings = providerFindings(facts, client, config.upstreams)
    assertUseful(findings)
    return finding(findings, 'provider.client_assertion')
  }

  const good = examine({})
  assert.equal(good.level, 'ok')
  assert.match(good.what, /has iss https:\/\/cluster\.example\.com, sub \S+, aud http:\/\/127/)
  assert.equal(examine({ aud: `${issuer}/oauth/token` }).level, 'ok')
  const other = examine({ aud: 'kubernetes' })
  assert.equal(other.level, 'warning')
  assert.match(other.todo ?? '', new RegExp(issuer))
  assert.equal(examine({ exp: 1 }).level, 'fault')
  rmSync(file)
  assert.match(
    finding(providerFindings(facts, client, config.upstreams), 'provider.client_assertion').what,
    /does not exist/,
  )
})

test('A provider of provider.metadata is examined without a discovery document', async (t) => {
  const { issuer, hits } = await provider(t)

  const findings = await findingsAbout(
    t,
    issuer,
    `metadata: { authorization_endpoint: ${issuer}/oauth/authorize, token_endpoint: ${issuer}/oauth/token, jwks_uri: ${issuer}/oauth/jwks, userinfo_endpoint: ${issuer}/oauth/userinfo }`,
  )

  assert.equal(finding(findings, 'provider.discovery').level, 'ok')
  assert.equal(finding(findings, 'provider.client').level, 'ok')
  assert.equal(finding(findings, 'provider.keys').level, 'ok')
  assert.equal(hits(metadataPath), 0)
})

test('A missing endpoint is a fault with the message of the gateway', async (t) => {
  const { issuer, bend } = await provider(t)
  bend(metadataPath, (body) => delete body['userinfo_endpoint'])

  const findings = await findingsAbout(t, issuer, '', '{ X-Email: email }')

  const { level, what } = finding(findings, 'provider.discovery')
  assert.equal(level, 'fault')
  assert.match(what, /its metadata has no userinfo_endpoint/)
})

test('A provider without a UserInfo endpoint is a warning that names the effect', async (t) => {
  const { issuer, bend } = await provider(t)
  bend(metadataPath, (body) => delete body['userinfo_endpoint'])

  const findings = await findingsAbout(t, issuer, 'id_token_claims: [email]', '{ X-Email: email }')

  assert.equal(finding(findings, 'provider.discovery').level, 'ok')
  assert.equal(finding(findings, 'provider.userinfo').level, 'warning')
})

for (const [scopes, params, isTold] of [
  ['[openid, offline_access]', '{}', true],
  ['[openid, offline_access]', '{ prompt: consent }', false],
  ['[openid]', '{}', false],
] as const)
  test(`what to do when no refresh token comes is ${isTold ? '' : 'not '}told: ${scopes} ${params}`, async (t) => {
    const { issuer } = await provider(t)
    const findings = await findingsAbout(t, issuer, `scopes: ${scopes}\n  authorization_params: ${params}`)

    assert.equal(/prompt: consent/.test(finding(findings, 'provider.scopes').what), isTold)
  })

for (const [settings, reads, isTold] of [
  ['', 'groups', true],
  ['scopes: [openid, groups]', 'groups', false],
  ['', 'department', false],
  ['', 'phone_number', true],
] as const)
  test(`A scope that the provider lists for a claim of a rule is ${isTold ? '' : 'not '}missing: ${reads} ${settings}`, async (t) => {
    const { issuer, bend } = await provider(t)
    bend(metadataPath, (body) => (body['scopes_supported'] = ['openid', 'profile', 'email', 'groups', 'phone']))
    const rules = `[{ path: /admin/*, require: { claim: ${reads}, any_of: [a] } }]`
    const findings = await findingsAbout(t, issuer, settings, '{}', rules)
    const told = findings.filter(({ id }) => id === 'provider.scope_of_claim')

    assert.equal(told.length, isTold ? 1 : 0)
    assertUseful(findings)
    if (reads === 'groups' && isTold)
      assert.match(JSON.stringify(told), /write provider\.scopes: \[openid, profile, email, groups\]/)
  })

test('A key set without a key for the algorithm is a fault', async (t) => {
  const { issuer } = await provider(t)

  const findings = await findingsAbout(t, issuer, 'id_token_signed_response_alg: ES256')

  const { level, what } = finding(findings, 'provider.keys')
  assert.equal(level, 'fault')
  assert.match(what, /0 of 1 keys are for ES256/)
})

test('Keys that are too short are a warning', async (t) => {
  const { issuer, bend } = await provider(t)
  bend('/oauth/jwks', (body) => {
    for (const key of body['keys'] as { n: string }[]) key.n = key.n.slice(0, 170)
  })

  assert.equal(finding(await findingsAbout(t, issuer), 'provider.keys').level, 'warning')
})

test('A key set that cannot be read is a fault', async (t) => {
  const { issuer, fault } = await provider(t)
  fault('/oauth/jwks', (_req, res) => void res.writeHead(500).end())

  assert.match(finding(await findingsAbout(t, issuer), 'provider.keys').what, /status 500/)
})

test('An unregistered redirect URI is a fault that names the URI to register', async (t) => {
  const { issuer } = await provider(t, { redirect_uris: ['https://elsewhere.example.com/callback'] })

  const { level, todo } = finding(await findingsAbout(t, issuer), 'provider.redirect_uri')

  assert.equal(level, 'fault')
  assert.ok(todo?.includes(`${externalUrl}/.gatehouse/callback`), todo)
})

test('An unknown client is a fault for its redirect URI and its credentials', async (t) => {
  const { issuer } = await provider(t, { client_id: 'somebody-else' })

  const findings = await findingsAbout(t, issuer)

  assert.equal(finding(findings, 'provider.redirect_uri').level, 'fault')
  assert.equal(finding(findings, 'provider.client').level, 'fault')
})

test('A wrong client secret is a fault that does not print the secret', async (t) => {
  const { issuer } = await provider(t, { client_secret: 'another secret than ours, longer' })

  const { level, what, todo } = finding(await findingsAbout(t, issuer), 'provider.client')

  assert.equal(level, 'fault')
  assert.match(what, /rejects the client orders \(invalid_client\)/)
  assert.match(todo ?? '', /client_secret_basic/)
})

test('A client that is rejected with a challenge only is recognized as rejected', async (t) => {
  const { issuer, fault } = await provider(t)
  fault('/oauth/token', (_req, res) => res.writeHead(401, { 'www-authenticate': 'Basic realm="id"' }).end())

  const { level, what } = finding(await findingsAbout(t, issuer), 'provider.client')

  assert.equal(level, 'fault')
  assert.match(what, /rejects the client orders \(invalid_client\)/)
})

test('Scopes and an authentication method that are not announced are warnings', async (t) => {
  const { issuer, bend } = await provider(t)
  bend(metadataPath, (body) => {
    body['scopes_supported'] = ['openid', 'profile']
    body['token_endpoint_auth_methods_supported'] = ['private_key_jwt']
    body['response_modes_supported'] = ['query']
  })

  const findings = await findingsAbout(
    t,
    issuer,
    'response_mode: form_post\n  scopes: [openid, profile, offline_access]',
  )

  assert.match(finding(findings, 'provider.scopes').what, /offline_access/)
  assert.match(finding(findings, 'provider.token_endpoint_auth_method').todo ?? '', /private_key_jwt/)
  assert.equal(finding(findings, 'provider.response_mode').level, 'fault')
})

test('A provider that does not encrypt as it is configured gets a warning for each algorithm', async (t) => {
  const { issuer, bend } = await provider(t)
  const lists = { id_token_encryption_alg_values_supported: ['RSA-OAEP'] }
  bend('/.well-known/openid-configuration', (body) => void Object.assign(body, lists))

  const findings = await findingsAbout(t, issuer, 'id_token_encrypted_response_alg: RSA-OAEP-256')

  const { level, todo } = finding(findings, 'provider.id_token_encrypted_response_alg')
  assert.equal(level, 'warning')
  assert.match(todo ?? '', /lists: RSA-OAEP$/)
  assert.match(
    finding(findings, 'provider.id_token_encrypted_response_enc').what,
    /list A128CBC-HS256 among its id_token/,
  )
})

test('A provider that responds to authorization requests with a page does not tell about the redirect URI', async (t) => {
  const { issuer, fault } = await provider(t)
  fault(
    '/oauth/authorize',
    (_req, res) => void res.writeHead(200, { 'content-type': 'text/html' }).end('<p>Sign in</p>'),
  )

  assert.equal(finding(await findingsAbout(t, issuer), 'provider.redirect_uri').level, 'warning')
})

test('An error in the authorization response is a fault that names it', async (t) => {
  const { issuer, fault } = await provider(t)
  const location = `${externalUrl}/.gatehouse/callback?error=invalid_scope&error_description=%1b%5b2J`
  fault('/oauth/authorize', (_req, res) => void res.writeHead(303, { location }).end())

  const { level, what, todo } = finding(await findingsAbout(t, issuer), 'provider.redirect_uri')

  assert.equal(level, 'fault')
  assert.match(what, /with the error invalid_scope$/)
  assert.match(todo ?? '', /provider\.scopes/)
})
