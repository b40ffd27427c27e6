import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { loadConfig } from '../../src/config/load.ts'
import { pageNames, placeholdersOf } from '../../src/core/page-names.ts'
import { wholeFile } from '../docs/snippets.ts'
import { formatDiagnostics } from '../support/diagnostics.ts'
import { environment } from './environment.ts'

const root = new URL('../../', import.meta.url)
const page = readFileSync(new URL('docs/reference.md', root), 'utf8')
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-docs-'))
after(() => rmSync(folder, { recursive: true }))

const pagesPage = readFileSync(new URL('docs/pages.md', root), 'utf8')

test('The reference has every setting', () => {
  const schema = readFileSync(new URL('schemas/gateway.schema.json', root), 'utf8')
  const names = new Set<string>()
  JSON.parse(schema, (name, value: unknown) => {
    if (name === 'properties') for (const setting of Object.keys(value as object)) names.add(setting)
    return value
  })

  const missing = [...names].filter((name) => !new RegExp(`\\b${name}\\b`).test(page))

  assert.deepEqual(missing, [])
})

test('The page about pages lists every page and placeholder, and its example is valid', () => {
  const [example = ''] = [...pagesPage.matchAll(/^```html\n(.*?)^```$/gms)].map(([, text = '']) => text)
  mkdirSync(join(folder, 'pages'))
  writeFileSync(join(folder, 'pages', 'forbidden.html'), example)
  writeFileSync(join(folder, 'pages.yaml'), wholeFile('settings', 'pages: { templates: pages }'))

  const loaded = loadConfig(join(folder, 'pages.yaml'), environment)

  assert.equal(formatDiagnostics(loaded.ok ? loaded.warnings : loaded.diagnostics), '')
  const shown = new Set([...pagesPage.matchAll(/`([\w-]+)`/g)].map(([, word]) => word))
  const known = pageNames.flatMap((name) => [name, ...placeholdersOf(name)])
  assert.deepEqual(
    [...new Set(known)].filter((word) => !shown.has(word)),
    [],
  )
})

test('The example configuration is valid', () => {
  const loaded = loadConfig(new URL('gateway.example.yaml', root).pathname, { DEMO_CLIENT_SECRET: 'x'.repeat(24) })

  assert.ok(loaded.ok, loaded.ok ? '' : formatDiagnostics(loaded.diagnostics))
})
