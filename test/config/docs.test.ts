import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { formatDiagnostics } from '../../src/config/diagnostics.ts'
import { loadConfig } from '../../src/config/load.ts'
import { pageNames, placeholdersOf } from '../../src/core/page-template.ts'
import { environment } from './environment.ts'

const root = new URL('../../', import.meta.url)
const page = readFileSync(new URL('docs/configuration.md', root), 'utf8')
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-docs-'))
after(() => rmSync(folder, { recursive: true }))

const pagesPage = readFileSync(new URL('docs/pages.md', root), 'utf8')

const blocks = [...`${page}${pagesPage}`.matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, text = '']) => text)

/** Makes a part of a file a whole one. */
function whole(part: string): string {
  const isHere = (setting: string) => new RegExp(`^${setting}:`, 'm').test(part)
  const isUpstreams = /^(headers|rules|logout|tests):/.test(part)
  const text = isUpstreams ? part.replaceAll(/^/gm, '    ') : part
  const start = isHere('version') ? '' : 'version: 1\nexternal_url: https://orders.example.com\n'
  const provider = isHere('provider')
    ? ''
    : 'provider:\n  issuer: https://id.example.com\n  client_id: a\n  client_secret: { env: CLIENT_SECRET }\n'
  if (isUpstreams) return `${start}${provider}upstreams:\n  orders:\n    url: http://127.0.0.1:3000\n${text}`
  const upstreams = isHere('upstreams') ? '' : 'upstreams: { a: { url: http://127.0.0.1:3000 } }\n'
  return `${start}${provider}${text}\n${upstreams}`
}

/** What an example refers to, where the test can find it. */
function withFiles(text: string): string {
  const cases = new URL('cases/', import.meta.url).pathname
  return text
    .replace('/run/secrets/session_key', `${cases}secrets/session_key`)
    .replaceAll(/\/run\/secrets\/\w+/g, `${cases}secrets/client_secret`)
    .replaceAll('/run/tls/tls.', `${cases}tls/gateway.`)
    .replaceAll('/etc/gatehouse/', `${cases}pages/`)
}

for (const [number, block] of blocks.entries()) {
  // A file that is included, and the one that includes it.
  if (/^(include:|# upstreams)/.test(block)) continue
  test(`example ${number + 1} of the configuration page: ${block.split('\n')[0]}`, () => {
    const file = join(folder, `${number}.yaml`)
    writeFileSync(file, withFiles(whole(block)))

    const loaded = loadConfig(file, environment)

    assert.equal(formatDiagnostics(loaded.ok ? loaded.warnings : loaded.diagnostics), '')
  })
}

test('the configuration page has every setting', () => {
  const schema = readFileSync(new URL('schemas/gateway.schema.json', root), 'utf8')
  const names = new Set<string>()
  JSON.parse(schema, (name, value: unknown) => {
    if (name === 'properties') for (const setting of Object.keys(value as object)) names.add(setting)
    return value
  })

  const missing = [...names].filter((name) => !new RegExp(`\\b${name}\\b`).test(page))

  assert.deepEqual(missing, [])
})

test('the page about pages has every page and every placeholder, and its example is a page', () => {
  const [example = ''] = [...pagesPage.matchAll(/^```html\n(.*?)^```$/gms)].map(([, text = '']) => text)
  mkdirSync(join(folder, 'pages'))
  writeFileSync(join(folder, 'pages', 'forbidden.html'), example)
  writeFileSync(join(folder, 'pages.yaml'), whole('pages: { templates: pages }'))

  const loaded = loadConfig(join(folder, 'pages.yaml'), environment)

  assert.equal(formatDiagnostics(loaded.ok ? loaded.warnings : loaded.diagnostics), '')
  const shown = new Set([...pagesPage.matchAll(/`([\w-]+)`/g)].map(([, word]) => word))
  const known = pageNames.flatMap((name) => [name, ...placeholdersOf(name)])
  assert.deepEqual(
    [...new Set(known)].filter((word) => !shown.has(word)),
    [],
  )
})

test('the example file is good', () => {
  const loaded = loadConfig(new URL('gateway.example.yaml', root).pathname, { DEMO_CLIENT_SECRET: 'x'.repeat(24) })

  assert.ok(loaded.ok, loaded.ok ? '' : formatDiagnostics(loaded.diagnostics))
})
