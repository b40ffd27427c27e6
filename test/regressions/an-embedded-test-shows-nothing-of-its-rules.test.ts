import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadConfig } from '../../src/config/load.ts'
import { failingTests } from '../../src/explain/embedded-tests.ts'
import { folderWith } from '../support/command-line.ts'
import { formatDiagnostics } from '../support/diagnostics.ts'

const settings = `version: 1
external_url: https://orders.example.com
provider: { issuer: 'https://id.example.com', client_id: orders, client_secret: { env: CLIENT_SECRET } }
session: { store: memory }
upstreams:
  orders:
    hosts: [orders.example.com]
    url: http://127.0.0.1:3000
`

function failuresOf(t: Parameters<typeof folderWith>[0], more: string): string {
  const folder = folderWith(t, { 'gateway.yaml': settings + more })
  const loaded = loadConfig(`${folder}/gateway.yaml`, { CLIENT_SECRET: 'correct horse battery' })
  assert.ok(loaded.ok, loaded.ok ? '' : formatDiagnostics(loaded.diagnostics))
  return formatDiagnostics(failingTests(loaded.config))
}

test('An embedded test of a path that belongs to an endpoint of the gateway fails', (t) => {
  const failures = failuresOf(t, '    tests: [{ get: /.gatehouse/session, expect: sign_in }]\n')

  assert.match(failures, /GET \/\.gatehouse\/session: the gateway itself serves this path/)
})

test('An embedded test of a path that another upstream serves fails', (t) => {
  const failures = failuresOf(
    t,
    `    tests: [{ get: /api/x, expect: sign_in }]
  api: { hosts: [orders.example.com], path: /api, url: 'http://127.0.0.1:3001' }
`,
  )

  assert.match(failures, /GET \/api\/x: upstreams\.api serves this path: move the test there/)
})

test('An upstream for any host can be tested although another upstream has the host of external_url', (t) => {
  const failures = failuresOf(
    t,
    `  rest:
    url: http://127.0.0.1:3001
    rules: [{ path: /open, access: public }]
    tests: [{ get: /open, expect: pass }, { get: /other, expect: sign_in }]
`,
  )

  assert.equal(failures, '')
})

test('An embedded test can show that a link signs out', (t) => {
  const failures = failuresOf(
    t,
    `    logout: { paths: [/logout] }
    tests: [{ get: /logout, expect: sign_out }, { get: /log-out, expect: sign_out }]
`,
  )

  assert.match(failures, /GET \/log-out: expected sign_out, but the outcome is sign_in/)
  assert.doesNotMatch(failures, /\/logout:/)
})
