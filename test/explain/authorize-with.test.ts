import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadConfig } from '../../src/config/load.ts'
import { explain } from '../../src/explain/decision.ts'
import { failingTests } from '../../src/explain/embedded-tests.ts'
import { personWith } from '../../src/explain/trial.ts'
import { folderWith } from '../support/command-line.ts'
import { formatDiagnostics } from '../support/diagnostics.ts'
import { secrets } from '../support/world.ts'

const yaml = `version: 1
external_url: https://orders.example.com
provider: { issuer: https://id.example.com, client_id: orders, client_secret: { env: CLIENT_SECRET } }
upstreams:
  orders:
    url: http://127.0.0.1:3000
    authorize_with: { url: http://127.0.0.1:1/access/v1/evaluation, claims: [groups] }
    rules:
      - { path: /assets/*, authorize_with: false }
      - { path: /admin/*, require: { claim: groups, any_of: [admins] } }
    tests:
      - { as: { sub: jane }, get: /, expect: pass }
      - { as: { sub: jane }, get: /admin/, expect: forbidden }
`

test('explain shows what the policy decision point would be asked, and tests take it for permitted', (t) => {
  const loaded = loadConfig(`${folderWith(t, { 'gateway.yaml': yaml })}/gateway.yaml`, secrets)
  assert.ok(loaded.ok, loaded.ok ? '' : formatDiagnostics(loaded.diagnostics))
  const { config } = loaded
  const jane = personWith({ sub: 'jane', groups: ['staff'] }, config)
  const explained = (target: string) =>
    explain({ method: 'GET', target, rawHeaders: ['Host', 'orders.example.com'], peer: undefined }, jane, config)
  const steps = (target: string) => explained(target).steps.flatMap((s) => (s.name === 'authorize_with' ? s.text : []))

  assert.deepEqual(failingTests(config), [])
  assert.match(steps('/orders/7').join(), /explain does not ask: \{"subject":\{"type":"user","id":"jane"/)
  assert.match(explained('/orders/7').decision.note ?? '', /if the policy decision point permits it/)
  assert.deepEqual(steps('/assets/a.css'), [])
  assert.equal(explained('/assets/a.css').decision.note, undefined)
  assert.deepEqual(steps('/admin/'), [])
  assert.equal(explained('/admin/').decision.note, undefined)
})
