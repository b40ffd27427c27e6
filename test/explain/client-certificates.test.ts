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
trusted_proxies: [10.1.2.3]
client_cert_header: true
upstreams:
  orders:
    url: http://127.0.0.1:3000
    headers: { X-Sub: sub, X-Client: certificate.cn }
    rules:
      - path: /api/*
        client_certificates: true
        require: { claim: certificate.uri, any_of: ['spiffe://example.com/billing'] }
    tests:
      - client_certificate: { o: [Example], ou: [Finance], cn: [billing], uri: ['spiffe://example.com/billing'] }
        get: /api/x
        expect: pass
        headers: { X-Sub: 'certificate/O=Example, OU=Finance, CN=billing', X-Client: billing }
      - client_certificate: { subject: 'C=DE, CN=billing', uri: ['spiffe://example.com/billing'] }
        post: /api/x
        expect: pass
        headers: { X-Sub: 'certificate/C=DE, CN=billing', X-Client: null }
      - { client_certificate: { cn: [other] }, get: /api/x, expect: forbidden }
      - { client_certificate: { cn: [billing] }, get: /page, expect: sign_in }
`

test('In tests of the configuration, a program can come with a client certificate', (t) => {
  const loaded = loadConfig(`${folderWith(t, { 'gateway.yaml': yaml })}/gateway.yaml`, secrets)
  assert.ok(loaded.ok, loaded.ok ? '' : formatDiagnostics(loaded.diagnostics))

  assert.deepEqual(failingTests(loaded.config), [])
})
