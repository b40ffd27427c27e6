import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { registrationOf } from '../../src/config/registration.ts'
import { providerFindings } from '../../src/doctor/provider.ts'
import { examineProvider } from '../../src/provider/examine.ts'
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

/** Whatever the provider answers comes with these header fields. */
function answerWith(fault: TestProvider['fault'], fields: () => Readonly<Record<string, string>>): void {
  for (const path of [metadataPath, '/oauth/jwks', '/oauth/token', '/oauth/authorize'])
    fault(path, (_req, res, pass) => {
      const write = res.writeHead.bind(res) as (...args: unknown[]) => typeof res
      res.writeHead = ((status: number, headers: Record<string, unknown>) =>
        write(status, { ...headers, ...fields() })) as typeof res.writeHead
      pass()
    })
}

async function findingsAbout(t: TestContext, issuer: string, settings = '', env = {}, headers = '{}') {
  const upstream = `url: http://127.0.0.1:3000\n    headers: ${headers}`
  const config = configOf(t, { externalUrl, issuer, provider: settings, upstream })
  const facts = await examineProvider(config.provider, registrationOf(config).redirect_uris)
  const findings = providerFindings(facts, config.provider, env)
  assertUseful(findings)
  return findings
}

test('of a provider with which all is well there is nothing but good to say', async (t) => {
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

test('a provider that is not there is a fault, with what to look at', async (t) => {
  const findings = await findingsAbout(t, `http://127.0.0.1:${await freePort()}`)

  const { level, what, todo } = finding(findings, 'provider.discovery')
  assert.equal(level, 'fault')
  assert.match(what, /ECONNREFUSED/)
  assert.match(todo ?? '', /compare the port with provider\.issuer/)
})

test('a provider that hangs is given up in time', async (t) => {
  const { issuer, fault } = await provider(t)
  fault(metadataPath, () => {})

  const findings = await inTime(5_000, () => findingsAbout(t, issuer, 'timeout: 300ms'))

  assert.match(finding(findings, 'provider.discovery').what, /no response within 300 ms/)
})

test('a wrong issuer is said with the one that the provider gives itself', async (t) => {
  const { issuer, bend } = await provider(t)
  bend(metadataPath, (body) => (body['issuer'] = `${issuer}/realms/staff`))

  const { level, what, todo } = finding(await findingsAbout(t, issuer), 'provider.discovery')

  assert.equal(level, 'fault')
  assert.ok(what.includes(`${issuer}/realms/staff`), what)
  assert.match(todo ?? '', /exactly as the provider spells it/)
})

test('an issuer under which there is nothing is said with the usual reason; a proxy of the environment is mentioned when there is no way', async (t) => {
  const { issuer } = await provider(t)

  const nothing = finding(
    await findingsAbout(t, `${issuer}/realms/staff`, '', { HTTPS_PROXY: 'http://proxy' }),
    'provider.discovery',
  )
  const gone = finding(
    await findingsAbout(t, `http://127.0.0.1:${await freePort()}`, '', { https_proxy: 'http://proxy' }),
    'provider.discovery',
  )

  assert.match(nothing.what, /status 404/)
  assert.match(nothing.todo ?? '', /realms\/REALM/)
  assert.doesNotMatch(nothing.todo ?? '', /HTTP proxy/)
  assert.match(gone.todo ?? '', /does not use the HTTP proxy/)
})

for (const [seconds, level] of [
  [-90, 'fault'],
  [90, 'fault'],
  [-20, 'warning'],
  [20, 'warning'],
] as const)
  test(`a clock that is off by ${seconds} s is a ${level}`, async (t) => {
    const { issuer, fault } = await provider(t)
    answerWith(fault, () => ({ date: new Date(Date.now() + seconds * 1000).toUTCString() }))

    const { what, level: found } = finding(await findingsAbout(t, issuer), 'provider.clock')

    assert.equal(found, level, what)
    assert.match(what, seconds < 0 ? /behind this one/ : /ahead of this one/)
  })

test('of a provider that sends no Date it is said that its clock cannot be compared', async (t) => {
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

test('answers that come out of a cache say nothing wrong about the clock', async (t) => {
  const { issuer, fault } = await provider(t)
  answerWith(fault, () => ({ date: new Date(Date.now() - 600_000).toUTCString(), age: '600' }))

  const { what, level } = finding(await findingsAbout(t, issuer), 'provider.clock')

  assert.equal(level, 'ok', what)
})

for (const [what, change, id, level] of [
  ['back-channel logout', 'backchannel_logout_supported', 'provider.backchannel_logout', 'warning'],
  ['the session in logout tokens', 'backchannel_logout_session_supported', 'provider.backchannel_logout', 'warning'],
  ['an end-session endpoint', 'end_session_endpoint', 'provider.end_session', 'warning'],
  ['PKCE', 'code_challenge_methods_supported', 'provider.pkce', 'warning'],
] as const)
  test(`a provider that does not announce ${what}: a ${level}`, async (t) => {
    const { issuer, bend } = await provider(t)
    bend(metadataPath, (body) => delete body[change])

    assert.equal(finding(await findingsAbout(t, issuer), id).level, level)
  })

test('what a provider demands and the gateway does not do is a fault', async (t) => {
  const { issuer, bend } = await provider(t)
  bend(metadataPath, (body) => (body['require_pushed_authorization_requests'] = true))

  assert.equal(finding(await findingsAbout(t, issuer), 'provider.require_pushed_authorization_requests').level, 'fault')
})

test('an endpoint is missing: it is said as the gateway would say it', async (t) => {
  const { issuer, bend } = await provider(t)
  bend(metadataPath, (body) => delete body['userinfo_endpoint'])

  const findings = await findingsAbout(t, issuer, '', {}, '{ X-Email: email }')

  const { level, what } = finding(findings, 'provider.discovery')
  assert.equal(level, 'fault')
  assert.match(what, /its metadata has no userinfo_endpoint/)
})

test('a provider without a userinfo endpoint that can be used is told with what is lost', async (t) => {
  const { issuer, bend } = await provider(t)
  bend(metadataPath, (body) => delete body['userinfo_endpoint'])

  const findings = await findingsAbout(t, issuer, 'id_token_claims: [email]', {}, '{ X-Email: email }')

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

test('a key set without a key for the algorithm is a fault', async (t) => {
  const { issuer } = await provider(t)

  const findings = await findingsAbout(t, issuer, 'id_token_signed_response_alg: ES256')

  const { level, what } = finding(findings, 'provider.keys')
  assert.equal(level, 'fault')
  assert.match(what, /0 of 1 keys are for ES256/)
})

test('keys that are too short are warned of', async (t) => {
  const { issuer, bend } = await provider(t)
  bend('/oauth/jwks', (body) => {
    for (const key of body['keys'] as { n: string }[]) key.n = key.n.slice(0, 170)
  })

  assert.equal(finding(await findingsAbout(t, issuer), 'provider.keys').level, 'warning')
})

test('a key set that cannot be read is a fault', async (t) => {
  const { issuer, fault } = await provider(t)
  fault('/oauth/jwks', (_req, res) => void res.writeHead(500).end())

  assert.match(finding(await findingsAbout(t, issuer), 'provider.keys').what, /status 500/)
})

test('a redirect URI that is not registered is a fault, with the address to register', async (t) => {
  const { issuer } = await provider(t, { redirect_uris: ['https://elsewhere.example.com/callback'] })

  const { level, todo } = finding(await findingsAbout(t, issuer), 'provider.redirect_uri')

  assert.equal(level, 'fault')
  assert.ok(todo?.includes(`${externalUrl}/.gatehouse/callback`), todo)
})

test('a client that is not known is a fault for its redirect URI and for itself', async (t) => {
  const { issuer } = await provider(t, { client_id: 'somebody-else' })

  const findings = await findingsAbout(t, issuer)

  assert.equal(finding(findings, 'provider.redirect_uri').level, 'fault')
  assert.equal(finding(findings, 'provider.client').level, 'fault')
})

test('a wrong secret is a fault, and is not printed', async (t) => {
  const { issuer } = await provider(t, { client_secret: 'another secret than ours, longer' })

  const { level, what, todo } = finding(await findingsAbout(t, issuer), 'provider.client')

  assert.equal(level, 'fault')
  assert.match(what, /refuses the client orders \(invalid_client\)/)
  assert.match(todo ?? '', /client_secret_basic/)
})

test('a client that is refused by a challenge alone is known to be refused', async (t) => {
  const { issuer, fault } = await provider(t)
  fault('/oauth/token', (_req, res) => res.writeHead(401, { 'www-authenticate': 'Basic realm="id"' }).end())

  const { level, what } = finding(await findingsAbout(t, issuer), 'provider.client')

  assert.equal(level, 'fault')
  assert.match(what, /refuses the client orders \(invalid_client\)/)
})

test('scopes and a way to authenticate that are not announced are warned of', async (t) => {
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

test('a provider that answers authorization requests with a page of its own leaves it open', async (t) => {
  const { issuer, fault } = await provider(t)
  fault(
    '/oauth/authorize',
    (_req, res) => void res.writeHead(200, { 'content-type': 'text/html' }).end('<p>Sign in</p>'),
  )

  assert.equal(finding(await findingsAbout(t, issuer), 'provider.redirect_uri').level, 'warning')
})

test('an error that sends the browser back is said', async (t) => {
  const { issuer, fault } = await provider(t)
  const location = `${externalUrl}/.gatehouse/callback?error=invalid_scope&error_description=%1b%5b2J`
  fault('/oauth/authorize', (_req, res) => void res.writeHead(303, { location }).end())

  const { level, what, todo } = finding(await findingsAbout(t, issuer), 'provider.redirect_uri')

  assert.equal(level, 'fault')
  assert.match(what, /with the error invalid_scope$/)
  assert.match(todo ?? '', /provider\.scopes/)
})
