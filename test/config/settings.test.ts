import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

const root = new URL('../../', import.meta.url)

test('The types of the settings are those of the schema; `npm run reference` writes them', () => {
  const generated = execFileSync(process.execPath, ['--import', 'tsx', '.ci/settings.mjs'], {
    cwd: root,
    encoding: 'utf8',
  })

  assert.equal(readFileSync(new URL('src/config/settings.ts', root), 'utf8'), generated)
})
