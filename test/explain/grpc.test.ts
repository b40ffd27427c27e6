import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadConfig } from '../../src/config/load.ts'
import { failingTests } from '../../src/explain/embedded-tests.ts'
import { folderWith } from '../support/command-line.ts'
import { formatDiagnostics } from '../support/diagnostics.ts'
import { secrets } from '../support/world.ts'

const yaml = `version: 1
external_url: https://orders.example.com
provider: { issuer: https://id.example.com, client_id: orders, client_secret: { env: CLIENT_SECRET } }
upstreams:
  orders:
    url: http://127.0.0.1:3000
    protocol: h2c
    tests:
      - { post: /orders.v1.Orders/List, expect: unauthorized }
      - { as: { sub: jane }, post: /orders.v1.Orders/List, expect: pass }
      - { post: /orders, expect: sign_in }
`

test('In tests of the configuration, a call of gRPC is made by a program', (t) => {
  const loaded = loadConfig(`${folderWith(t, { 'gateway.yaml': yaml })}/gateway.yaml`, secrets)
  assert.ok(loaded.ok, loaded.ok ? '' : formatDiagnostics(loaded.diagnostics))

  assert.deepEqual(failingTests(loaded.config), [])
})
