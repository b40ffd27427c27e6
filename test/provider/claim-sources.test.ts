import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { LogFields } from '../../src/observe/log.ts'
import { Metrics } from '../../src/observe/metrics.ts'
import {
  ecKey,
  type Handler,
  hmacJwt,
  type Json,
  jwt,
  now,
  part,
  paths,
  sendJson,
  type SigningProvider,
  startSigningProvider,
} from '../support/signing-provider.ts'
import { clientOf, recordedWarnings } from './a-client.ts'
import { movableClock } from './expectations.ts'

const key = ecKey('bank')

interface Outcome {
  readonly claims: Json
  readonly metrics: Metrics
  readonly warnings: readonly LogFields[]
}

/** UserInfo of Jane, whose `score` is at a bank. The gateway knows the bank, and its endpoint. */
async function userinfoWith(
  t: TestContext,
  sourceOf: (bank: SigningProvider) => Json,
  { endpoints = true, needs = ['score'] }: { readonly endpoints?: boolean; readonly needs?: readonly string[] } = {},
): Promise<Outcome> {
  const bank = await startSigningProvider(t)
  bank.publish(key.jwk)
  const provider = await startSigningProvider(t, {
    userinfoClaims: needs,
    claimSources: [
      { issuer: bank.issuer, jwks_uri: `${bank.issuer}${paths.jwks}`, endpoints: endpoints ? [bank.issuer] : [] },
    ],
  })
  const sources = { src1: sourceOf(bank) }
  provider.respond(paths.userinfo, (_req, res) =>
    sendJson(res, { sub: 'jane', email: 'jane@example.com', _claim_names: { score: 'src1' }, _claim_sources: sources }),
  )
  const { log, warnings } = recordedWarnings()
  const metrics = new Metrics()
  const found = await clientOf(t, provider, movableClock(), log, metrics).userinfo({ access_token: 'at-1' }, 'jane')
  assert.equal(found.kind, 'claims')
  return {
    metrics,
    claims: found.kind === 'claims' ? found.claims : {},
    warnings: warnings.map(({ fields }) => fields),
  }
}

const signed = (bank: SigningProvider, claims: Json = {}) => jwt({ iss: bank.issuer, score: 650, ...claims }, key)
const asJwt =
  (bank: SigningProvider, claims: Json = {}): Handler =>
  (_req, res) =>
    res.writeHead(200, { 'content-type': 'application/jwt' }).end(signed(bank, claims))

test('aggregated claims of a known issuer are read', async (t) => {
  const { claims, warnings } = await userinfoWith(t, (bank) => ({ JWT: signed(bank, { sub: 'j-7', email: 'x@bank' }) }))

  assert.deepEqual([claims['score'], claims['_claim_names']], [650, {}])
  assert.deepEqual([claims['sub'], claims['email']], ['jane', 'jane@example.com'])
  assert.deepEqual(warnings, [])
})

test('distributed claims are fetched from a known endpoint, with their own access token', async (t) => {
  const seen: unknown[] = []
  const { claims, warnings } = await userinfoWith(t, (bank) => {
    bank.respond('/claims', (req, res, body) => {
      seen.push(req.headers.authorization)
      asJwt(bank)(req, res, body)
    })
    return { endpoint: `${bank.issuer}/claims`, access_token: 'at-of-bank' }
  })

  assert.equal(claims['score'], 650)
  assert.deepEqual([seen, warnings], [['Bearer at-of-bank'], []])
})

test('the access token of the session is not sent to the endpoint of a source', async (t) => {
  let seen: unknown = 'no request'
  await userinfoWith(t, (bank) => {
    bank.respond('/claims', (req, res, body) => {
      seen = req.headers.authorization
      asJwt(bank)(req, res, body)
    })
    return { endpoint: `${bank.issuer}/claims` }
  })

  assert.equal(seen, undefined)
})

test('a source that no rule and no header needs is not asked', async (t) => {
  let hits = () => 0
  const { claims } = await userinfoWith(
    t,
    (bank) => {
      hits = () => bank.hits('/claims')
      return { endpoint: `${bank.issuer}/claims` }
    },
    { needs: ['email'] },
  )

  assert.deepEqual([hits(), claims['_claim_names']], [0, { score: 'src1' }])
})

test('an endpoint that the configuration does not name is never asked', async (t) => {
  let hits = () => 0
  const { claims, warnings } = await userinfoWith(
    t,
    (bank) => {
      hits = () => bank.hits('/claims')
      return { endpoint: `${bank.issuer}/claims` }
    },
    { endpoints: false },
  )

  assert.deepEqual([hits(), claims['score'], claims['_claim_names']], [0, undefined, { score: 'src1' }])
  assert.match(String(warnings[0]?.['reason']), /not in provider.claim_sources/)
})

for (const [what, sourceOf, why] of [
  ['of an unknown issuer', (bank) => ({ JWT: signed(bank, { iss: 'https://evil.example' }) }), /issuer of its JWT/],
  ['without an issuer', (bank) => ({ JWT: signed(bank, { iss: undefined }) }), /issuer of its JWT/],
  ['signed with another key', ({ issuer }) => ({ JWT: jwt({ iss: issuer, score: 850 }, ecKey('other')) }), /refused/],
  [
    'signed with "none"',
    ({ issuer }) => ({ JWT: `${part({ alg: 'none' })}.${part({ iss: issuer, score: 850 })}.` }),
    /refused/,
  ],
  ['signed with a secret', ({ issuer }) => ({ JWT: hmacJwt({ iss: issuer, score: 850 }, 'secret') }), /refused/],
  ['for another client', (bank) => ({ JWT: signed(bank, { aud: 'others' }) }), /another client/],
  ['that has expired', (bank) => ({ JWT: signed(bank, { exp: now / 1000 - 60 }) }), /exp/],
  ['that is no JWT', () => ({ JWT: 'score=850' }), /cannot be read/],
  ['that is very long', () => ({ JWT: 'a'.repeat(300_000) }), /longer/],
  ['of a source without anything', () => ({}), /neither JWT nor endpoint/],
  [
    'of an endpoint with a user',
    ({ issuer }) => ({ endpoint: `${issuer.replace('//', '//a:b@')}/claims` }),
    /user name/,
  ],
  [
    'of an endpoint with a token of two lines',
    ({ issuer }) => ({ endpoint: `${issuer}/claims`, access_token: 'a\r\nb' }),
    /access_token/,
  ],
  ['of an endpoint that is away', ({ issuer }) => ({ endpoint: `${issuer}/nowhere` }), /status 404/],
  [
    'of an endpoint that responds with JSON',
    (bank) => {
      bank.respond('/claims', (_req, res) => sendJson(res, { score: 850 }))
      return { endpoint: `${bank.issuer}/claims` }
    },
    /cannot be read/,
  ],
  [
    'of an endpoint that redirects',
    (bank) => {
      bank.respond('/claims', (_req, res) => res.writeHead(302, { location: `${bank.issuer}/other` }).end())
      bank.respond('/other', asJwt(bank))
      return { endpoint: `${bank.issuer}/claims` }
    },
    /status 302/,
  ],
] satisfies readonly (readonly [string, (bank: SigningProvider) => Json, RegExp])[])
  test(`a claim ${what} is withheld, and the log says why`, async (t) => {
    const { claims, warnings } = await userinfoWith(t, sourceOf)

    assert.deepEqual([claims['score'], claims['_claim_names']], [undefined, { score: 'src1' }])
    assert.equal(warnings.length, 1)
    assert.match(String(warnings[0]?.['reason']), why)
    assert.doesNotMatch(JSON.stringify(warnings), /850/)
  })

test('the metrics count requests to the endpoint and to the keys of another issuer', async (t) => {
  const { metrics } = await userinfoWith(t, (bank) => {
    bank.respond('/claims', asJwt(bank))
    return { endpoint: `${bank.issuer}/claims` }
  })

  const cells = metrics.read('gatehouse_provider_requests_total')?.cells ?? []
  const counted = cells.map(({ labels, values }) => [...labels, ...values])
  assert.deepEqual(
    counted.filter(([endpoint]) => endpoint === 'claim_source'),
    [['claim_source', 'ok', 2]],
  )
})
