// Own process: it works in the folder of each case, so that messages name short paths.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { chdir } from 'node:process'
import { test } from 'node:test'
import { parse, stringify } from 'yaml'
import { loadConfig } from '../../src/config/load.ts'
import { failingTests } from '../../src/explain/embedded-tests.ts'
import { folderWith } from '../support/command-line.ts'
import { formatDiagnostics } from '../support/diagnostics.ts'
import { imported } from '../support/imported.ts'

// Each folder of imports/ is a set-up of another program: `call` has the arguments of `gatehouse
// import`, and `expected.yaml` what it writes, with its notes before it. `UPDATE=1` writes the
// present ones. `decisions.yaml` says for each upstream what the other program decides, written by
// hand from its documentation: the imported file must decide the same.
const folder = new URL('imports/', import.meta.url).pathname

interface Imported {
  listen: unknown
  provider: Record<string, unknown>
  readonly upstreams: Record<string, { tests?: readonly object[] }>
}

function secretsIn(yaml: string): Record<string, string> {
  const names = [...yaml.matchAll(/\benv: "?([A-Z][A-Z0-9_]*)/g)].map(([, name = '']) => name)
  const key = Buffer.alloc(32, 7).toString('base64')
  return Object.fromEntries(names.map((name) => [name, name.endsWith('KEY') ? key : 'correct horse battery']))
}

for (const name of readdirSync(folder)) {
  test(`The set-up ${name} is imported with the same decisions`, async (t) => {
    chdir(join(folder, name))
    const said = await imported(...readFileSync('call', 'utf8').trim().split(/\s+/))
    const told = `${said.err.replaceAll(/^(?=.)/gm, '# ').replace(/# Only what was given[^]*/, '')}${said.out}`

    if (process.env['UPDATE'] === '1') writeFileSync('expected.yaml', told)

    assert.equal(told, readFileSync('expected.yaml', 'utf8'))
    assert.doesNotMatch(told, /never-to-be-printed/)
    const decisions = parse(readFileSync('decisions.yaml', 'utf8')) as Record<string, readonly object[]>
    const document = parse(said.out) as Imported
    // The files that the set-up names are not here.
    document.listen = '127.0.0.1:8080'
    document.provider['client_secret'] = { env: 'CLIENT_SECRET' }
    for (const [upstream, tests] of Object.entries(decisions)) {
      const imported = document.upstreams[upstream]
      assert.ok(imported, `there is no upstream ${upstream}`)
      imported.tests = [...(imported.tests ?? []), ...tests]
    }
    const file = join(folderWith(t, { 'gateway.yaml': stringify(document) }), 'gateway.yaml')
    const loaded = loadConfig(file, { CLIENT_SECRET: 'correct horse battery', ...secretsIn(said.out) })
    assert.ok(loaded.ok, loaded.ok ? '' : formatDiagnostics(loaded.diagnostics))
    assert.equal(formatDiagnostics(failingTests(loaded.config)), '')
  })
}
