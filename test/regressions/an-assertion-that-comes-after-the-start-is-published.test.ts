import assert from 'node:assert/strict'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileFindings } from '../../packages/doctor/secret-files.ts'
import { loadConfig } from '../../src/config/load.ts'
import { platformJwt } from '../support/client-keys.ts'
import { folderWith } from '../support/command-line.ts'
import { formatDiagnostics } from '../support/diagnostics.ts'
import { secrets } from '../support/world.ts'

const yaml = (assertion: string, folder: string) => `version: 1
external_url: https://orders.example.com
provider: { issuer: https://id.example.com, client_id: orders, client_assertion: { file: ${assertion} } }
session: { keys: [{ env: SESSION_KEY }], store: memory }
upstreams:
  handbook: { rules: [{ path: /handbook/*, respond: { files: ${folder} } }, { path: /*, respond: { status: 404 } }] }
`

test('No rule may publish the folder of a client assertion, also while the file is missing or half written', (t) => {
  const pages = folderWith(t, { 'index.html': '' })
  const file = join(folderWith(t, { 'gateway.yaml': yaml(join(pages, 'token'), pages) }), 'gateway.yaml')
  const told = () => {
    const loaded = loadConfig(file, secrets)
    return formatDiagnostics(loaded.ok ? loaded.warnings : loaded.diagnostics)
  }

  const missing = told()
  writeFileSync(join(pages, 'token'), 'eyJ')
  const half = told()
  writeFileSync(join(pages, 'token'), platformJwt())
  const whole = told()

  for (const text of [missing, half, whole])
    assert.match(text, /respond\.files: contains \S+token, which is for the gateway only/)
})

test('gatehouse doctor says who may read an assertion, also a half written one, and nothing about a missing file', (t) => {
  const folder = folderWith(t, { 'gateway.yaml': '' })
  const [file, token] = [join(folder, 'gateway.yaml'), join(folder, 'token')]
  const other = folderWith(t, { 'index.html': '' })
  writeFileSync(file, yaml(token, other))
  const findings = () => {
    const loaded = loadConfig(file, secrets)
    assert.ok(loaded.ok)
    return fileFindings(file, loaded.secretFiles).map(({ id, level }) => [id, level])
  }

  assert.deepEqual(findings(), [])
  writeFileSync(token, 'eyJ')
  chmodSync(token, 0o644)
  assert.deepEqual(findings(), [['files.secret', 'warning']])
  chmodSync(token, 0o600)
  assert.deepEqual(findings(), [['files.secret', 'ok']])
})
