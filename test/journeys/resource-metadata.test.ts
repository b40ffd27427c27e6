import assert from 'node:assert/strict'
import { test } from 'node:test'
import { audience, startApi } from '../support/api-world.ts'

const path = '/.well-known/oauth-protected-resource'

test('Metadata names the issuer, and challenges name the metadata (RFC 9728)', async (t) => {
  const world = await startApi(t, { accessTokens: `{ audience: [${audience}], scopes: [read], metadata: true }` })

  const { challenge } = await world.call('/api/x', 'garbage')
  const response = await world.send(path)

  assert.equal(
    challenge,
    `Bearer error="invalid_token", scope="read", resource_metadata="${world.url}/.well-known/oauth-protected-resource"`,
  )
  assert.equal(response.status, 200)
  assert.equal(response.headers['access-control-allow-origin'], '*')
  assert.deepEqual(JSON.parse(response.body), {
    resource: world.url,
    authorization_servers: [world.provider.issuer],
    bearer_methods_supported: ['header'],
    // Not those of other rules: clients request what is listed, and challenges have the rest.
    scopes_supported: ['read'],
  })
  // Everything else belongs to the application.
  for (const other of [`${path}/`, `${path}/x`, `${path}x`]) assert.equal((await world.send(other)).status, 401, other)
  assert.equal((await world.send(path, {}, 'POST')).status, 401)
})

for (const [path, rules, expected] of [
  [
    '/mcp',
    '[{ path: /mcp, access_tokens: { scopes: [read] } }, { path: /mcp/admin, access_tokens: { scopes: [admin] } }]',
    ['read'],
  ],
  ['/mcp/', '[{ path: /mcp/*, access_tokens: { scopes: [read] } }]', ['read']],
  ['/', '[{ path: /*, access_tokens: { scopes: [read] } }]', ['read']],
  ['/', '[{ path: /admin/*, access_tokens: { scopes: [admin] } }]', undefined],
  [
    '/mcp',
    `[{ path: /mcp, methods: [DELETE], access_tokens: { scopes: [admin] } },
      { path: /mcp, methods: [POST], access_tokens: { scopes: [write] } }, { path: /mcp, access_tokens: { scopes: [read] } }]`,
    ['read', 'write'],
  ],
] as const)
  test(`The metadata of ${path} have the scopes ${String(expected)} with the rules ${rules}`, async (t) => {
    const world = await startApi(t, {
      ...{ accessTokens: `{ audience: [${audience}], metadata: true }`, rules },
      upstream: `path: ${path}`,
    })
    const suffix = path.replace(/\/$/, '')

    const response = await world.send(`/.well-known/oauth-protected-resource${suffix}`)

    const found = JSON.parse(response.body) as Readonly<Record<string, unknown>>
    assert.deepEqual([found['resource'], found['scopes_supported']], [world.url + suffix, expected])
  })

test('A page of another origin may read the metadata with a field of its own', async (t) => {
  const world = await startApi(t, { accessTokens: `{ audience: [${audience}], metadata: true }` })
  const preflight = {
    origin: 'https://inspector.example.com',
    'access-control-request-method': 'GET',
    'access-control-request-headers': 'mcp-protocol-version',
  }

  const { status, headers } = await world.send(path, preflight, 'OPTIONS')

  assert.deepEqual(
    [status, headers['access-control-allow-origin'], headers['access-control-allow-headers']],
    [204, '*', '*'],
  )
  assert.match(String(headers['access-control-allow-methods']), /GET/)
  assert.equal(world.seen.length, 0)
  assert.equal((await world.send('/x', preflight, 'OPTIONS')).headers['access-control-allow-origin'], undefined)
})

test('Without metadata: true, the URL belongs to the application', async (t) => {
  const world = await startApi(t)

  assert.equal((await world.send(path)).status, 401)
  assert.equal((await world.call('/api/x', 'garbage')).challenge, 'Bearer error="invalid_token"')
})
