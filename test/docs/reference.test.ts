import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import written from '../../schemas/gateway.schema.json' with { type: 'json' }
import { settingsThatNeedRestart } from '../../src/server/reloadable.ts'
import { pages } from './markdown.ts'
import { referencePage, type Schema } from './reference.ts'

const schema = written as unknown as Schema
const file = new URL('../../docs/reference.md', import.meta.url)

test('The reference matches the schema (npm run reference generates it)', async () => {
  const page = await referencePage(schema, settingsThatNeedRestart)

  if (process.env['UPDATE'] === '1') writeFileSync(file, page)
  assert.ok(readFileSync(file, 'utf8') === page, 'docs/reference.md differs from the schema: npm run reference')
})

test('The page on configuration leaves defaults to the reference', () => {
  const page = pages.find(({ path }) => path === 'docs/configuration.md')

  const headings = [...(page?.text ?? '').matchAll(/^\| *setting .*\| *default .*$/gm)].map(([line]) => line)

  assert.deepEqual(headings, [])
})

test('The reference describes a map and a long list of values once', async () => {
  const page = await referencePage(schema, [])

  assert.match(page, /^- `providers`: map of \[maps\]\(#provider\)\./m)
  assert.match(page, /^- `signing_alg`: as \[`id_token_signed_response_alg`\]\(#provider\)\./m)
  assert.equal(page.match(/`RSA-OAEP-256`, /g)?.length, 1)
  const sections = page.split(/^## .*$/m).slice(1)
  assert.equal(new Set(sections).size, sections.length)
})
