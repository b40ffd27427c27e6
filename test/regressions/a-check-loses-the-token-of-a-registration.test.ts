import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { startApi } from '../support/claims-apis.ts'
import { folderWith } from '../support/command-line.ts'
import { startCommand } from '../support/command.ts'
import { sendJson } from '../support/signing-provider.ts'

/** A provider that replaces the token for the registration with each request (RFC 7592 §3). */
async function startRotating(t: TestContext): Promise<string> {
  let token = 0
  const { origin } = await startApi(t, (req, res) => {
    if (req.url !== '/client') return sendJson(res, { issuer: origin })
    if (req.headers.authorization !== `Bearer ${token}`) return sendJson(res, { error: 'invalid_token' }, 401)
    token += 1
    return sendJson(res, { client_id: 'orders', registration_access_token: String(token) })
  })
  return origin
}

test('A check of the registrations at two providers keeps the new tokens of both', async (t) => {
  const [staff, partners] = [await startRotating(t), await startRotating(t)]
  const yaml = `version: 1
external_url: http://127.0.0.1:8080
providers:
  staff: { issuer: "${staff}", client_id: orders, client_secret: { env: SECRET } }
  partners: { issuer: "${partners}", client_id: orders, client_secret: { env: SECRET } }
upstreams: { orders: { url: "http://127.0.0.1:3000" } }
`
  const client = (issuer: string, token: string) => ({
    client_id: 'orders',
    registration_client_uri: `${issuer}/client`,
    registration_access_token: token,
  })
  const state = (token: string) => ({
    version: 1,
    clients: { [staff]: client(staff, token), [partners]: client(partners, token) },
  })
  const files = { 'gateway.yaml': yaml, 'gatehouse-registration.json': JSON.stringify(state('0')) }
  const cwd = folderWith(t, files)

  const command = startCommand(t, ['check', '--registration'], { cwd, env: { SECRET: 'x'.repeat(32) } })
  await command.ended

  assert.deepEqual(JSON.parse(readFileSync(join(cwd, 'gatehouse-registration.json'), 'utf8')), state('1'))
})
