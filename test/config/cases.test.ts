// Own process: it works in the folder of the golden cases, so that diagnostics name short paths.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { chdir } from 'node:process'
import { test } from 'node:test'
import { loadConfig } from '../../src/config/load.ts'
import { formatDiagnostics } from '../support/diagnostics.ts'
import { environment, secretTexts } from './environment.ts'

// The diagnostics of each `NAME.yaml` are exactly those in `NAME.expected`. `UPDATE=1` writes the
// present ones: read them as the person who has to fix the file.
chdir(new URL('cases/', import.meta.url).pathname)

const names = readdirSync('.').flatMap((file) => /^(.+)\.yaml$/.exec(file)?.[1] ?? [])

for (const name of names) {
  test(`The diagnostics of ${name}.yaml are as expected`, () => {
    const loaded = loadConfig(`${name}.yaml`, environment)
    const text = loaded.ok ? `ok\n${formatDiagnostics(loaded.warnings)}` : formatDiagnostics(loaded.diagnostics)
    const told = `${text.trimEnd()}\n`

    if (process.env['UPDATE'] === '1') writeFileSync(`${name}.expected`, told)

    assert.equal(told, readFileSync(`${name}.expected`, 'utf8'))
    for (const secret of secretTexts) assert.ok(!told.includes(secret), 'a diagnostic shows a secret')
    assert.doesNotMatch(told, /schema|instancePath|additionalProp|must NOT|must match|undefined|\[object/)
  })
}
