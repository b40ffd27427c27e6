import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { loadConfig } from '../../src/config/load.ts'
import type { ProviderConfig } from '../../src/config/model/provider.ts'
import { endSessionRequest } from '../../src/provider/end-session.ts'
import { environment } from '../config/environment.ts'
import { formatDiagnostics } from '../support/diagnostics.ts'

const endpoint = new URL('https://id.example.com/logout?p=sign-out')
const post_logout_redirect_uri = 'https://orders.example.com/.gatehouse/signed-out'
const values = { id_token_hint: 'e30.e30.AA', post_logout_redirect_uri, state: 's-1' }

function providerOf(t: TestContext, issuer: string, settings = ''): ProviderConfig {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-end-session-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'gateway.yaml')
  writeFileSync(
    file,
    `version: 1
external_url: https://orders.example.com
provider:
  issuer: ${issuer}
  client_id: orders
  client_secret: { env: CLIENT_SECRET }
  ${settings}
upstreams: { orders: { url: "http://127.0.0.1:3000" } }
`,
  )
  const loaded = loadConfig(file, environment)
  if (!loaded.ok) assert.fail(formatDiagnostics(loaded.diagnostics))
  return loaded.config.providers[0]
}

/** The parameters of the URL that the browser loads. */
async function parameters(config: ProviderConfig, changes: Partial<typeof values> = {}) {
  const request = await endSessionRequest(endpoint, { ...values, ...changes }, config, () =>
    assert.fail('the gateway posts no ID Token here'),
  )
  assert.equal(request.kind, 'redirect')
  return Object.fromEntries(request.kind === 'redirect' ? request.url.searchParams : [])
}

test('Amazon Cognito gets client_id and logout_uri, without a setting', async (t) => {
  const cognito = providerOf(t, 'https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_AbCdEfGhI')

  assert.deepEqual(await parameters(cognito), {
    p: 'sign-out',
    client_id: 'orders',
    logout_uri: post_logout_redirect_uri,
  })
})

test('Entra ID gets a short ID Token, and client_id in place of a long one', async (t) => {
  const entra = providerOf(t, 'https://login.microsoftonline.com/6f1b0a3c-7d42-4c1e-9f0a-000000000000/v2.0')

  assert.equal((await parameters(entra))['id_token_hint'], values.id_token_hint)
  const { client_id, id_token_hint } = await parameters(entra, { id_token_hint: 'x'.repeat(2100) })
  assert.equal(client_id, 'orders')
  assert.equal(id_token_hint, undefined)
})

test('A parameter of end_session_params is added to those of the specification', async (t) => {
  const other = providerOf(
    t,
    'https://id.example.com',
    "end_session_params: { ui_locales: de, logout_hint: 'c-{client_id}' }",
  )

  assert.deepEqual(await parameters(other), { p: 'sign-out', ...values, ui_locales: 'de', logout_hint: 'c-orders' })
})
