import assert from 'node:assert/strict'
import { test } from 'node:test'
import { audience, startApi } from '../support/api-world.ts'

test('The challenge for tokens comes first, because clients of MCP read only the first one', async (t) => {
  const accessTokens = `{ audience: [${audience}], scopes: [read], metadata: true }`
  const { send, url } = await startApi(t, { accessTokens })

  const { challenge } = await send('/api/x')

  const metadata = `${url}/.well-known/oauth-protected-resource`
  assert.equal(challenge, `Bearer scope="read", resource_metadata="${metadata}", Gatehouse realm="sign-in"`)
})
