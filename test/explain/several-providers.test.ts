import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadConfig } from '../../src/config/load.ts'
import type { Claims } from '../../src/core/claims.ts'
import { explain } from '../../src/explain/decision.ts'
import { failingTests } from '../../src/explain/embedded-tests.ts'
import { personWith } from '../../src/explain/trial.ts'
import { folderWith } from '../support/command-line.ts'
import { formatDiagnostics } from '../support/diagnostics.ts'
import { secrets } from '../support/world.ts'

const [staff, partners] = ['https://id.example.com', 'https://partners.example.com']
const yaml = `version: 1
external_url: https://intranet.example.com
providers:
  staff: { issuer: ${staff}, client_id: intranet, client_secret: { env: CLIENT_SECRET } }
  partners:
    issuer: ${partners}
    client_id: intranet
    client_secret: { env: CLIENT_SECRET }
    claims: { groups: https://partners.example.com/groups }
upstreams:
  accounting:
    url: http://127.0.0.1:3000
    path: /accounting
    providers: [staff]
    tests:
      - { as: { sub: jane }, get: /accounting/, expect: pass }
      - { as: { sub: jane, iss: ${partners} }, get: /accounting/, expect: sign_in }
  orders:
    url: http://127.0.0.1:3001
    headers: { X-User: sub, X-Issuer: iss, X-Groups: groups }
    tests:
      - as: { sub: jane, iss: ${partners}, groups: [buyers] }
        get: /
        expect: pass
        headers: { X-Issuer: ${partners}, X-Groups: buyers }
`

function configIn(folder: string) {
  const loaded = loadConfig(`${folder}/gateway.yaml`, secrets)
  assert.ok(loaded.ok, loaded.ok ? '' : formatDiagnostics(loaded.diagnostics))
  return loaded.config
}

test('In tests of the configuration, the claim iss says at which provider a person is signed in', (t) => {
  assert.deepEqual(failingTests(configIn(folderWith(t, { 'gateway.yaml': yaml }))), [])
})

for (const [path, as, location] of [
  ['/accounting/', undefined, '/.gatehouse/staff/sign-in?return_to=%2Faccounting%2F'],
  ['/accounting/', { sub: 'jane', iss: partners }, '/.gatehouse/staff/sign-in?return_to=%2Faccounting%2F'],
  ['/accounting/', { sub: 'jane', iss: staff }, undefined],
  ['/orders', undefined, '/.gatehouse/sign-in?return_to=%2Forders'],
] as const satisfies readonly (readonly [string, Claims | undefined, string | undefined])[])
  test(`explain shows where a person at ${String(as?.iss)} signs in for ${path}`, (t) => {
    const config = configIn(folderWith(t, { 'gateway.yaml': yaml }))
    const rawHeaders = ['Host', 'intranet.example.com', 'Accept', 'text/html']
    const request = { method: 'GET', target: path, rawHeaders, peer: undefined }

    const { decision } = explain(request, personWith(as, config), config)

    assert.equal(decision.location, location)
  })
