import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { loadConfig } from '../../../src/config/load.ts'
import { folderWith } from '../../support/command-line.ts'
import { root } from '../../support/command.ts'
import { formatDiagnostics } from '../../support/diagnostics.ts'

const imports = join(root, 'test', 'import', 'imports')

for (const name of readdirSync(imports)) {
  const [program = '', file = ''] = readFileSync(join(imports, name, 'call'), 'utf8').split(/\s+/)
  test(`A file of ${program} as the configuration names its import: ${name}`, (t) => {
    const folder = folderWith(t, { 'gateway.yaml': readFileSync(join(imports, name, file), 'utf8') })

    const loaded = loadConfig(join(folder, 'gateway.yaml'), {})

    assert.ok(!loaded.ok)
    const [{ message, hint } = {}, ...more] = loaded.diagnostics
    assert.equal(message, `looks like a configuration of ${program}, so nothing of it is shown`)
    assert.equal(hint, `translate it: gatehouse import ${program} FILE`)
    assert.deepEqual(more, [])
    assert.doesNotMatch(formatDiagnostics(loaded.diagnostics), /never-to-be-printed/)
  })
}

test('A file of oauth2-proxy with a few lines is recognized', (t) => {
  const folder = folderWith(t, { 'gateway.yaml': 'http_address = ":4180"\nupstreams = ["http://127.0.0.1:3000"]\n' })

  const loaded = loadConfig(join(folder, 'gateway.yaml'), {})

  assert.equal(loaded.ok ? undefined : loaded.diagnostics[0]?.hint, 'translate it: gatehouse import oauth2-proxy FILE')
})

test('A configuration of the gateway that names other programs is read', (t) => {
  const text = `version: 1 # before, image: oauth2-proxy
external_url: https://orders.example.com
provider: { issuer: https://id.example.com, client_id: orders, client_secret: { env: OAUTH2_PROXY_SECRET } }
upstreams: { vouch: { url: http://127.0.0.1:3000 } }
`
  const folder = folderWith(t, { 'gateway.yaml': text })

  assert.ok(loadConfig(join(folder, 'gateway.yaml'), { OAUTH2_PROXY_SECRET: 'correct horse battery' }).ok)
})
