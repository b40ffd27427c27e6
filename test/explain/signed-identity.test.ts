import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { readCheckCall } from '../../src/cli/check.ts'
import { readExplainCall } from '../../src/cli/explain.ts'
import { folderWith, recordingTerminal } from '../support/command-line.ts'

const yaml = `version: 1
external_url: https://orders.example.com
provider: { issuer: https://id.example.com, client_id: orders, client_secret: { env: CLIENT_SECRET } }
upstreams:
  orders:
    url: http://127.0.0.1:3000
    signed_identity: { audience: the-orders, claims: [email, id] }
    rules: [{ path: /open/*, access: public }]
    tests:
      - { as: { sub: jane }, get: /, expect: pass }
      - { get: /open/a, expect: pass, headers: { X-Gatehouse-Identity: null } }
  shop: { path: /shop, url: "http://127.0.0.1:3001" }
`
const claims = '{ "sub": "jane", "email": "jane@example.com", "id": 9007199254740993 }'

async function printed(t: TestContext, read: typeof readExplainCall, args: readonly string[]) {
  const folder = folderWith(t, { 'gateway.yaml': yaml, 'claims.json': claims })
  const paths = args.map((arg) => (arg === 'CLAIMS' ? join(folder, 'claims.json') : arg))
  const call = read([...paths, '--config', join(folder, 'gateway.yaml')])
  assert.ok('carryOut' in call, JSON.stringify(call))
  const { terminal, said } = recordingTerminal({ CLIENT_SECRET: 'correct horse battery' })
  const exitCode = await call.carryOut(terminal)
  return { exitCode, ...said }
}

test('explain shows that the upstream gets a signed identity, but not the JWT', async (t) => {
  const signedIn = await printed(t, readExplainCall, ['--as', 'CLAIMS', '-H', 'X_Gatehouse_Identity: forged', '/'])
  const anonymous = await printed(t, readExplainCall, ['--as', 'CLAIMS', '/open/a'])

  assert.match(signedIn.out, /X-Gatehouse-Identity: +\(signed\)/)
  assert.match(signedIn.out, /X_Gatehouse_Identity: +only the gateway sets this field/)
  assert.doesNotMatch(signedIn.out, /eyJ/)
  assert.doesNotMatch(anonymous.out, /X-Gatehouse-Identity/)
})

test('check runs tests of upstreams with a signed identity, and prints what applications verify with', async (t) => {
  const { exitCode, out } = await printed(t, readCheckCall, [])
  const json = JSON.parse((await printed(t, readCheckCall, ['--format', 'json'])).out) as Record<string, unknown>

  assert.equal(exitCode, 0, out)
  assert.match(out, /keys \(JWKS\) +https:\/\/orders\.example\.com\/\.gatehouse\/jwks\.json/)
  assert.match(out, /issuer +https:\/\/orders\.example\.com\n/)
  assert.match(out, /audience of orders +the-orders\n/)
  assert.doesNotMatch(out, /audience of shop/)
  assert.deepEqual(json['signed_identity'], {
    issuer: 'https://orders.example.com',
    jwks_uri: 'https://orders.example.com/.gatehouse/jwks.json',
    audiences: { orders: 'the-orders' },
  })
})
