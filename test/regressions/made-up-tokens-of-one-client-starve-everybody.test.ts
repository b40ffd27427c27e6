import assert from 'node:assert/strict'
import { request as send, type ServerResponse } from 'node:http'
import { test } from 'node:test'
import { audience, startApi } from '../support/api-world.ts'
import { sendJson } from '../support/signing-provider.ts'
import { until } from '../support/until.ts'

/** The status of a request with a token, from another address of this machine. */
function statusFrom(localAddress: string, url: string, token: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}` }
    send(url, { localAddress, headers, agent: false }, (response) => {
      response.resume()
      resolve(response.statusCode)
    })
      .on('error', reject)
      .end()
  })
}

test('Made-up tokens of one client, about which the provider does not respond, keep no other client waiting', async (t) => {
  const world = await startApi(t, { accessTokens: `{ audience: [${audience}], check: introspection }` })
  const waiting: ServerResponse[] = []
  let isBack = false
  world.provider.respond('/introspect', (_req, res, body) => {
    if (new URLSearchParams(body).get('token') === 'good') sendJson(res, { active: true, aud: audience, sub: 'jane' })
    else if (isBack) sendJson(res, { active: false })
    else waiting.push(res)
  })
  const flood = Array.from({ length: 100 }, (_, each) => world.call('/api/x', `made-up-${each}`))
  await until('the provider is asked', () => waiting.length > 16)

  assert.equal(await statusFrom('127.0.0.2', `${world.url}/api/x`, 'good'), 200)

  isBack = true
  for (const res of waiting) sendJson(res, { active: false })
  const statuses = new Set((await Promise.all(flood)).map(({ status }) => status))
  assert.deepEqual([...statuses].toSorted(), [401, 503])
})
