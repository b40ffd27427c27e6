import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { watchFiles } from '../../src/cli/reload.ts'
import { loadConfig } from '../../src/config/load.ts'
import { until } from '../support/until.ts'

const env = { CLIENT_SECRET: 'secret', SESSION_KEY: Buffer.alloc(32, 1).toString('base64') }
const settings = `version: 1
external_url: https://orders.example.com
provider: { issuer: https://id.example.com, client_id: orders, client_secret: { env: CLIENT_SECRET } }
session: { keys: [{ env: SESSION_KEY }], store: memory }
include: [upstreams/*.yaml]
`

test('Files that are replaced while they are read, or before they are watched, are read again', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-swap-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  // Kubernetes mounts a ConfigMap behind one symbolic link, and replaces the link.
  for (const version of ['one', 'two']) {
    mkdirSync(join(folder, version, 'upstreams'), { recursive: true })
    writeFileSync(join(folder, version, 'gateway.yaml'), settings)
    writeFileSync(join(folder, version, 'upstreams', 'orders.yaml'), `${version}: { url: http://127.0.0.1:1 }\n`)
  }
  symlinkSync('one', join(folder, 'data'))
  symlinkSync('data/gateway.yaml', join(folder, 'gateway.yaml'))
  symlinkSync('data/upstreams', join(folder, 'upstreams'))
  const load = () => loadConfig(join(folder, 'gateway.yaml'), env)
  const read = load()
  assert.ok(read.ok)

  symlinkSync('two', join(folder, 'next'))
  renameSync(join(folder, 'next'), join(folder, 'data'))
  let changes = 0
  const watch = watchFiles(() => (changes += 1), 5)
  t.after(() => watch.stop())
  watch.watch(read.files)

  await until('the change is noticed', () => changes === 1)
  const again = load()
  assert.ok(again.ok)
  assert.deepEqual(
    again.config.upstreams.map(({ name }) => name),
    ['two'],
  )
})
