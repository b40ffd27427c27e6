import assert from 'node:assert/strict'
import { test } from 'node:test'
import { reason } from '../../src/core/errors.ts'
import { clientOf } from '../provider/a-client.ts'
import { paths, startSigningProvider } from '../support/signing-provider.ts'

test('A token response that is not JSON is not quoted in the log', async (t) => {
  const provider = await startSigningProvider(t)
  provider.respond(paths.token, (_req, res) =>
    res.writeHead(200, { 'content-type': 'application/json' }).end('{"access_token": sesame-open}'),
  )
  const tokens = { access_token: 'at', obtained_at: 0, id_token: 'it', refresh_token: 'rt' }

  const error: unknown = await clientOf(t, provider)
    .refresh(tokens, 'jane')
    .catch((error: unknown) => error)

  assert.equal(reason(error), 'the tokens were not refreshed: the response is not JSON')
})
