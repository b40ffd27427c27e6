import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { calculateJwkThumbprint, decodeJwt, decodeProtectedHeader, type JWK } from 'jose'
import { loadConfig } from '../../src/config/load.ts'
import { assertWholeJourney, type ClientJourney, startClient } from '../support/client-journey.ts'
import { withFeatures } from '../support/client-keys.ts'
import { until } from '../support/until.ts'
import { secrets } from '../support/world.ts'

const dpop = { dPoP: { enabled: true } } as const
const bound = { adjust: withFeatures(dpop, { dpop_bound_access_tokens: true }) }
const settings = { provider: bound, providerSettings: 'dpop: true' }

interface Proof {
  readonly path: string
  /** RFC 7638 */
  readonly thumbprint: string
  readonly claims: Readonly<Record<string, unknown>>
  readonly authorization: string | undefined
}

/** Records the proofs of all token and UserInfo requests. */
function recordProofs({ world }: ClientJourney): Promise<Proof>[] {
  const proofs: Promise<Proof>[] = []
  const record = async ({ url = '', headers }: IncomingMessage): Promise<Proof> => {
    const proof = String(headers['dpop'])
    const { jwk } = decodeProtectedHeader(proof)
    return {
      path: url,
      thumbprint: await calculateJwkThumbprint(jwk as JWK),
      claims: decodeJwt(proof),
      authorization: headers.authorization,
    }
  }
  for (const path of ['/oauth/token', '/oauth/userinfo'])
    world.provider.fault(path, (req, _res, pass) => {
      proofs.push(record(req))
      pass()
    })
  return proofs
}

test('Every request with tokens carries a proof of the key of its session', async (t) => {
  const journey = await startClient(t, { ...settings, store: 'redis' })
  const recorded = recordProofs(journey)

  await assertWholeJourney(journey)

  const proofs = await Promise.all(recorded)
  assert.ok(proofs.length >= 4, String(proofs.length))
  assert.equal(new Set(proofs.map(({ thumbprint }) => thumbprint)).size, 1, 'one key for the session')
  assert.equal(new Set(proofs.map(({ claims }) => claims['jti'])).size, proofs.length, 'each proof is used once')
  for (const { path, claims, authorization } of proofs) {
    assert.equal(claims['htu'], `${journey.world.provider.issuer}${path}`)
    assert.equal(claims['htm'], path === '/oauth/token' ? 'POST' : 'GET')
    if (path === '/oauth/userinfo') assert.match(authorization ?? '', /^DPoP /)
    assert.equal('ath' in claims, path === '/oauth/userinfo')
  }
})

test('Two sessions have different keys', async (t) => {
  const journey = await startClient(t, settings)
  const { world } = journey
  const recorded = recordProofs(journey)

  for (const person of ['jane', 'zoe']) await world.browser(person).get(`${world.url}/echo`)

  const thumbprints = (await Promise.all(recorded)).map(({ thumbprint }) => thumbprint)
  assert.equal(new Set(thumbprints).size, 2)
})

test('The key of a session is in no request to the application, and not in the log', async (t) => {
  const journey = await startClient(t, settings)
  const { world, jane, log } = journey

  const { body } = await jane.get(`${world.url}/echo`)

  assert.doesNotMatch(body, /dpop/i)
  assert.doesNotMatch(log(), /dpop/i)
})

test('The gateway repeats a request with the nonce that the provider asks for', async (t) => {
  const journey = await startClient(t, {
    providerSettings: 'dpop: true',
    provider: {
      adjust: withFeatures(
        { dPoP: { enabled: true, nonceSecret: Buffer.alloc(32, 3), requireNonce: () => true } },
        { dpop_bound_access_tokens: true },
      ),
    },
  })
  const recorded = recordProofs(journey)

  await assertWholeJourney(journey)

  const proofs = await Promise.all(recorded)
  const [first, second] = proofs
  assert.equal(first?.claims['nonce'], undefined)
  assert.equal(typeof second?.claims['nonce'], 'string')
  const withoutNonce = proofs.filter(({ claims }) => claims['nonce'] === undefined)
  assert.equal(withoutNonce.length, 1, 'the nonce is remembered for later requests')
})

for (const [providerSettings, type, said] of [
  ['dpop: true', 'Bearer', /of the type bearer, and not DPoP/],
  ['dpop: false', 'DPoP', /of the type dpop, and not Bearer/],
  ['dpop: false', 'mac', /token_type|of the type/],
] as const)
  test(`A token of the type ${type} ends the sign-in with ${providerSettings}`, async (t) => {
    const { world, jane, log } = await startClient(t, {
      providerSettings,
      provider: { adjust: withFeatures(dpop) },
    })
    world.provider.bend('/oauth/token', (body) => void (body['token_type'] = type))

    const page = await jane.get(`${world.url}/echo`)

    assert.equal(page.status, 502)
    assert.equal(jane.cookies.has('gatehouse'), false)
    assert.match(log(), said)
  })

test('A refresh that brings a bearer token does not replace the bound one', async (t) => {
  const { world, jane, log } = await startClient(t, settings)
  assert.equal((await jane.get(`${world.url}/echo`)).status, 200)
  const repair = world.provider.bend('/oauth/token', (body) => void (body['token_type'] = 'Bearer'))
  world.moveClock(11 * 60_000)

  const during = await jane.send(`${world.url}/echo`)
  repair()

  assert.equal(during.status, 503)
  assert.match(log(), /the refreshed tokens are invalid: the access token is of the type bearer/)
})

test('A provider that rejects a proof at UserInfo does not end the session', async (t) => {
  const { world, jane, log } = await startClient(t, settings)
  assert.equal((await jane.get(`${world.url}/echo`)).status, 200)
  for (const error of ['invalid_dpop_proof', 'use_dpop_nonce']) {
    const asked = world.provider.hits('/oauth/userinfo')
    const repair = world.provider.fault('/oauth/userinfo', (_req, res) =>
      res.writeHead(401, { 'www-authenticate': `DPoP error="${error}"`, 'dpop-nonce': 'n' }).end(),
    )
    world.moveClock(100_000)
    await until('UserInfo was asked', async () => {
      await jane.send(`${world.url}/echo`)
      return world.provider.hits('/oauth/userinfo') > asked
    })
    await until('the attempt is in the log', async () => /rejected the DPoP proof/.test(log()))
    repair()
  }

  assert.equal((await jane.send(`${world.url}/echo`)).status, 200)
  assert.doesNotMatch(log(), /session\.ended/)
})

test('A token that UserInfo does not accept any more ends the session, also with a proof', async (t) => {
  const { world, jane, log } = await startClient(t, settings)
  assert.equal((await jane.get(`${world.url}/echo`)).status, 200)
  const [session] = world.provider.sessions()
  assert.ok(session !== undefined && world.provider.expireSession(session.sid))
  world.moveClock(100_000)

  await until('the session has ended', async () => (await jane.send(`${world.url}/echo`)).status !== 200)

  assert.match(log(), /session\.ended.*invalid_grant/)
})

test('A session from before DPoP gets its key at its next refresh, and goes on', async (t) => {
  const journey = await startClient(t, { providerSettings: 'dpop: false', provider: { adjust: withFeatures(dpop) } })
  const { world, jane, log } = journey
  assert.equal((await jane.get(`${world.url}/echo`)).status, 200)
  const [replica] = world.replicas
  assert.ok(replica)
  writeFileSync(replica.file, readFileSync(replica.file, 'utf8').replace('dpop: false', 'dpop: true'))
  const loaded = loadConfig(replica.file, secrets)
  assert.ok(loaded.ok)
  await replica.gateway.reload(loaded.config)
  const recorded: Promise<Proof>[] = recordProofs(journey)
  assert.equal((await jane.send(`${world.url}/echo`)).status, 200)

  world.moveClock(11 * 60_000)
  await until('the tokens were refreshed and UserInfo was read', async () => {
    assert.equal((await jane.send(`${world.url}/echo`)).status, 200, log())
    return recorded.length >= 2
  })

  const proofs = await Promise.all(recorded)
  assert.equal(new Set(proofs.map(({ thumbprint }) => thumbprint)).size, 1)
  assert.ok(proofs.some(({ path, authorization }) => path === '/oauth/userinfo' && /^DPoP /.test(authorization ?? '')))
})
