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
    scopes_supported: ['read', 'write'],
  })
  // Everything else belongs to the application.
  for (const other of [`${path}/`, `${path}/x`, `${path}x`]) assert.equal((await world.send(other)).status, 401, other)
  assert.equal((await world.send(path, {}, 'POST')).status, 401)
})

test('Without metadata: true, the URL belongs to the application', async (t) => {
  const world = await startApi(t)

  assert.equal((await world.send(path)).status, 401)
  assert.equal((await world.call('/api/x', 'garbage')).challenge, 'Bearer error="invalid_token"')
})
