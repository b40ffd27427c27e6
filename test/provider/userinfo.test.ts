import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import { reason as reasonOf } from '../../src/core/errors.ts'
import {
  ecKey,
  type Handler,
  hmacJwt,
  type Json,
  jwt,
  part,
  paths,
  sendJson,
  type SigningProvider,
  startSigningProvider,
} from '../support/signing-provider.ts'
import { clientOf, validNow } from './a-client.ts'

const json = { 'content-type': 'application/json' }

test('a UserInfo request has the access token in the header, and nowhere else', async (t) => {
  const provider = await startSigningProvider(t)
  let seen: { readonly url: string | undefined; readonly authorization: string | undefined } | undefined
  provider.respond(paths.userinfo, (req, res) => {
    seen = { url: req.url, authorization: req.headers.authorization }
    sendJson(res, { sub: 'jane', email: 'jane@example.com' })
  })

  const userinfo = await clientOf(t, provider).userinfo({ access_token: 'at-1' }, 'jane')

  assert.deepEqual(userinfo, { kind: 'claims', claims: { sub: 'jane', email: 'jane@example.com' } })
  assert.deepEqual(seen, { url: paths.userinfo, authorization: 'Bearer at-1' })
})

for (const [what, response] of [
  ['a challenge', (_req, res) => res.writeHead(401, { 'www-authenticate': 'Bearer error="invalid_token"' }).end()],
  ['no challenge', (_req, res) => res.writeHead(401).end()],
  ['a page', (_req, res) => res.writeHead(401, { 'content-type': 'text/html' }).end('<html></html>')],
] satisfies readonly (readonly [string, Handler])[])
  test(`401 with ${what} means that the access token is not accepted any more`, async (t) => {
    const provider = await startSigningProvider(t)
    provider.respond(paths.userinfo, response)

    assert.deepEqual(await clientOf(t, provider).userinfo({ access_token: 'at-1' }, 'jane'), { kind: 'unauthorized' })
  })

for (const [what, response, code] of [
  ['another sub', (_req, res) => sendJson(res, { sub: 'samir' }), 'ERR_SIGN_IN_RESPONSE'],
  ['a sub that differs in case', (_req, res) => sendJson(res, { sub: 'Jane' }), 'ERR_SIGN_IN_RESPONSE'],
  ['no sub', (_req, res) => sendJson(res, { email: 'jane@example.com' }), 'ERR_SIGN_IN_RESPONSE'],
  ['a sub that is a list', (_req, res) => sendJson(res, { sub: ['jane'] }), 'ERR_SIGN_IN_RESPONSE'],
  ['nothing', (_req, res) => sendJson(res, null), 'ERR_SIGN_IN_RESPONSE'],
  [
    'a page',
    (_req, res) => res.writeHead(200, { 'content-type': 'text/html' }).end('<html></html>'),
    'ERR_SIGN_IN_RESPONSE',
  ],
  [
    'a token',
    (_req, res) => res.writeHead(200, { 'content-type': 'application/jwt' }).end('e30.e30.AA'),
    'ERR_SIGN_IN_RESPONSE',
  ],
  [
    'compressed content',
    (_req, res) => res.writeHead(200, { ...json, 'content-encoding': 'gzip' }).end(gzipSync('{"sub":"jane"}')),
    'ERR_SIGN_IN_RESPONSE',
  ],
  [
    'content that it says is compressed',
    (_req, res) => res.writeHead(200, { ...json, 'content-encoding': 'gzip' }).end('{"sub":"jane"}'),
    'ERR_SIGN_IN_RESPONSE',
  ],
  ['403', (_req, res) => res.writeHead(403).end(), 'ERR_SIGN_IN_RESPONSE'],
  ['500', (_req, res) => res.writeHead(500).end(), 'ERR_PROVIDER_UNAVAILABLE'],
  ['503', (_req, res) => res.writeHead(503).end(), 'ERR_PROVIDER_UNAVAILABLE'],
  ['nothing at all', () => {}, 'ERR_PROVIDER_UNAVAILABLE'],
  ['nothing, and hangs up', (req) => req.destroy(), 'ERR_PROVIDER_UNAVAILABLE'],
  ['five megabytes', (_req, res) => sendJson(res, { sub: 'jane', pad: 'x'.repeat(5e6) }), 'ERR_PROVIDER_UNAVAILABLE'],
] satisfies readonly (readonly [string, Handler, string])[])
  test(`userinfo that responds with ${what} is ${code}`, async (t) => {
    const provider = await startSigningProvider(t, { timeoutMs: what.startsWith('nothing') ? 300 : 2_000 })
    provider.respond(paths.userinfo, response)

    await assert.rejects(clientOf(t, provider).userinfo({ access_token: 'at-1' }, 'jane'), { code })
  })

test('The reason of a 403 of UserInfo says where to look', async (t) => {
  const provider = await startSigningProvider(t)
  provider.respond(paths.userinfo, (_req, res) => res.writeHead(403).end())

  await assert.rejects(clientOf(t, provider).userinfo({ access_token: 'at-1' }, 'jane'), {
    message: /status 403; check provider\.scopes, and what the client/,
  })
})

test('a redirect of UserInfo is not followed with the access token', async (t) => {
  const [provider, elsewhere] = [await startSigningProvider(t), await startSigningProvider(t)]
  provider.respond(paths.userinfo, (_req, res) =>
    res.writeHead(302, { location: `${elsewhere.issuer}${paths.userinfo}` }).end(),
  )

  await assert.rejects(clientOf(t, provider).userinfo({ access_token: 'at-1' }, 'jane'), {
    code: 'ERR_SIGN_IN_RESPONSE',
  })

  assert.equal(elsewhere.hits(paths.userinfo), 0)
})

/** A provider that signs UserInfo, for a client that is registered so. */
async function signingUserinfo(
  t: TestContext,
  makeJwt: (provider: SigningProvider) => string,
  type = 'application/jwt',
) {
  const provider = await startSigningProvider(t, { userinfo_signed_response_alg: 'RS256' })
  provider.respond(paths.userinfo, (_req, res) => res.writeHead(200, { 'content-type': type }).end(makeJwt(provider)))
  return clientOf(t, provider).userinfo({ access_token: 'at-1' }, 'jane')
}

const signed =
  (claims: Json = {}) =>
  (provider: SigningProvider) =>
    jwt({ iss: provider.issuer, aud: 'orders', sub: 'jane', email: 'jane@example.com', ...claims }, provider.key)

test('Signed UserInfo is verified, and its claims are those about the person', async (t) => {
  const found = await signingUserinfo(t, signed({ ...validNow(), jti: 'a', groups: ['staff'] }))

  assert.deepEqual(found, { kind: 'claims', claims: { sub: 'jane', email: 'jane@example.com', groups: ['staff'] } })
})

for (const [what, makeJwt, reason] of [
  ['of another client', signed({ aud: 'others' }), /aud/],
  ['of another issuer', signed({ iss: 'https://evil.example' }), /iss/],
  ['without an issuer', signed({ iss: undefined }), /iss/],
  ['without an audience', signed({ aud: undefined }), /aud/],
  ['about another person', signed({ sub: 'samir' }), /sub/],
  ['that has expired', signed({ exp: 1_000_000_000 }), /exp/],
  ['with a wrong signature', (provider: SigningProvider) => `${signed()(provider).slice(0, -8)}AAAAAAAA`, /signature/],
  [
    'signed with "none"',
    ({ issuer }: SigningProvider) => `${part({ alg: 'none' })}.${part({ iss: issuer, aud: 'orders', sub: 'jane' })}.`,
    /alg/i,
  ],
  [
    'signed with the client secret',
    ({ issuer }: SigningProvider) => hmacJwt({ iss: issuer, aud: 'orders', sub: 'jane' }, 'secret'),
    /alg/i,
  ],
  [
    'signed with another algorithm',
    ({ issuer }: SigningProvider) => jwt({ iss: issuer, aud: 'orders', sub: 'jane' }, ecKey('ec')),
    /alg/i,
  ],
  ['that is encrypted', () => 'a.b.c.d.e', /encrypted/],
  ['with too many characters', () => 'a'.repeat(300_000), /longer/],
] satisfies readonly (readonly [string, (provider: SigningProvider) => string, RegExp])[])
  test(`UserInfo ${what} is refused`, async (t) => {
    await assert.rejects(signingUserinfo(t, makeJwt), (error: Error) => {
      assert.equal('code' in error && error.code, 'ERR_SIGN_IN_RESPONSE')
      assert.match(reasonOf(error), reason)
      return true
    })
  })

test('UserInfo that should be signed is refused when it is JSON', async (t) => {
  await assert.rejects(
    signingUserinfo(t, () => '{"sub":"jane"}', 'application/json'),
    { code: 'ERR_SIGN_IN_RESPONSE', message: /not signed/ },
  )
})

test('UserInfo that is signed unexpectedly is refused, and the reason names the setting', async (t) => {
  const provider = await startSigningProvider(t)
  provider.respond(paths.userinfo, (_req, res) =>
    res.writeHead(200, { 'content-type': 'application/jwt' }).end(signed()(provider)),
  )

  await assert.rejects(clientOf(t, provider).userinfo({ access_token: 'at-1' }, 'jane'), {
    code: 'ERR_SIGN_IN_RESPONSE',
    message: /userinfo_signed_response_alg/,
  })
})
