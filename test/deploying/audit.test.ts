import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { bundledPackages } from '../support/bundle.ts'
import { root } from '../support/command.ts'

/** An advisory as `npm audit --json` prints it. */
const advisory = { title: 'Accepts a forged token', severity: 'high', url: 'https://example.com/advisories/1' }

test('A vulnerability of a bundled package is found, although all packages are development dependencies', (t) => {
  assert.ok(bundledPackages().includes('node_modules/jose'))
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-audit-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const audit = (vulnerabilities: object) => {
    const file = join(folder, 'audit.json')
    writeFileSync(file, JSON.stringify({ vulnerabilities }))
    return spawnSync(process.execPath, ['.ci/audit.mjs', file], { cwd: root, encoding: 'utf8' })
  }

  const found = audit({ jose: { via: [advisory] }, prettier: { via: [advisory] }, 'openid-client': { via: ['jose'] } })
  const none = audit({ prettier: { via: [advisory] } })

  assert.equal(found.status, 1)
  assert.match(
    found.stdout,
    /^jose \d+\.\d+\.\d+: Accepts a forged token \(high\) https:\/\/example\.com\/advisories\/1$/m,
  )
  assert.match(found.stdout, /^Not in the program: prettier$/m)
  assert.equal(none.status, 0)
})
