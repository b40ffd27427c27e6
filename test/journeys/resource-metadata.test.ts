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

test('The resource is the URL that the client uses: its host, and a slash at its end (RFC 9728 §3.3)', async (t) => {
  const world = await startApi(t, {
    ...{ accessTokens: `{ audience: [${audience}], metadata: true }`, rules: '[{ path: /mcp, access_tokens: true }]' },
    upstream: 'hosts: [a.example, b.example]\n    path: /mcp',
  })
  const { port } = new URL(world.url)

  for (const url of [`http://a.example:${port}/mcp`, `http://b.example:${port}/mcp`, `http://b.example:${port}/mcp/`]) {
    const { host, pathname, origin } = new URL(url)
    const { challenge } = await world.send(pathname, { host, authorization: 'Bearer garbage' })
    const metadataUrl = `${origin}${path}${pathname}`
    assert.equal(challenge, `Bearer error="invalid_token", resource_metadata="${metadataUrl}"`)
    const response = await world.send(path + pathname, { host })
    assert.equal((JSON.parse(response.body) as { resource: string }).resource, url)
  }
  // The names of hosts are those of the configuration.
  assert.equal((await world.send(`${path}/mcp`, { host: 'evil.example' })).status, 404)
})

test('A client cannot choose the host of the metadata where the upstream serves any host', async (t) => {
  const world = await startApi(t, { accessTokens: `{ audience: [${audience}], metadata: true }` })

  const response = await world.send(path, { host: 'evil.example' })

  assert.equal((JSON.parse(response.body) as { resource: string }).resource, world.url)
})
