import assert from 'node:assert/strict'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { loadConfig } from '../../src/config/load.ts'
import { failingTests } from '../../src/explain/embedded-tests.ts'
import { environment } from '../config/environment.ts'
import { platformJwt } from '../support/client-keys.ts'
import { formatDiagnostics } from '../support/diagnostics.ts'
import { blocksOf, pages } from './markdown.ts'
import { kindOf, wholeFile, type Kind } from './snippets.ts'

const cases = new URL('../config/cases/', import.meta.url).pathname
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-docs-'))
after(() => rmSync(folder, { recursive: true }))

/** What snippets refer to. */
const files = {
  'run/secrets/signals_secret': `${cases}secrets/session_key`,
  'run/secrets/session_key': `${cases}secrets/session_key`,
  'run/tls/tls.crt': `${cases}tls/gateway.crt`,
  'run/tls/tls.key': `${cases}tls/gateway.key`,
  'run/tls/wiki.crt': `${cases}tls/gateway.crt`,
  'run/tls/wiki.key': `${cases}tls/gateway.key`,
  'run/tls/client.crt': `${cases}tls/gateway.crt`,
  'run/tls/client.key': `${cases}tls/gateway.key`,
  'run/secrets/client_key.pem': `${cases}tls/gateway.key`,
  'run/secrets/decryption_key.pem': `${cases}tls/gateway.key`,
  'run/tls/ca.crt': `${cases}tls/gateway.crt`,
  'run/tls/clients-ca.crt': `${cases}tls/gateway.crt`,
  'run/tls/redis-ca.crt': `${cases}tls/gateway.crt`,
  'service-accounts.txt': `${cases}secrets/accounts`,
  'etc/gatehouse/logo.svg': `${cases}pages/logo.svg`,
} as const
for (const [name, from] of Object.entries(files)) {
  mkdirSync(dirname(join(folder, name)), { recursive: true })
  cpSync(from, join(folder, name))
}
for (const name of [
  'client_secret',
  'redis_password',
  'sentinel_password',
  'otlp_authorization',
  'decision_point',
  'admin_token',
])
  cpSync(`${cases}secrets/client_secret`, join(folder, 'run/secrets', name))
writeFileSync(join(folder, 'run/secrets/client_assertion'), platformJwt())
mkdirSync(join(folder, 'upstreams'))
mkdirSync(join(folder, 'srv', 'handbook'), { recursive: true })
writeFileSync(
  join(folder, 'upstreams', 'shop.yaml'),
  'shop: { url: "http://127.0.0.1:3001", external_url: https://shop.example.com }\n',
)

/**
 * What pages show on purpose although it is warned of: the page, and the setting that the warning
 * is about.
 */
const warnings: Readonly<Record<string, readonly string[]>> = {
  'docs/conformance.md': ['external_url'],
  'docs/first-application.md': ['external_url'],
  'docs/providers/google.md': ['provider.scopes'],
  'docs/providers/keycloak.md': ['provider.scopes'],
}

const blocks = pages.flatMap(blocksOf)

for (const block of blocks.filter(({ language }) => language === 'yaml' || language === 'yml'))
  test(`The YAML in ${block.page}, line ${block.line}, is valid`, () => {
    const kind = kindOf(block)
    assert.ok(
      kind !== undefined,
      'nobody can tell what this is: a whole file begins with version and external_url; a part has settings of the top level, or of an upstream, and no others; what is for another program says so behind the language, such as ```yaml helm (test/docs/snippets.ts)',
    )
    if (!isOurs(kind)) return
    const file = join(folder, `${block.page.replaceAll('/', '-')}-${block.line}.yaml`)
    writeFileSync(file, wholeFile(kind, block.text).replaceAll(/(?<=[\s:'"])\/(?=run\/|etc\/|srv\/)/g, `${folder}/`))

    const loaded = loadConfig(file, environment)

    assert.equal(loaded.ok ? '' : formatDiagnostics(loaded.diagnostics), '')
    if (!loaded.ok) return
    const unexpected = loaded.warnings.filter(({ path }) => warnings[block.page]?.includes(path) !== true)
    assert.equal(formatDiagnostics(unexpected), '')
    assert.equal(formatDiagnostics(failingTests(loaded.config)), '')
  })

function isOurs(kind: Kind): boolean {
  return ['whole', 'settings', 'upstream', 'included'].includes(kind)
}

test('The test finds a snippet with an error, and one of an unknown kind', () => {
  assert.equal(kindOf({ word: '', text: 'headrs: { X-Remote-User: sub }\n' }), undefined)
  assert.equal(kindOf({ word: 'unknown', text: 'a: 1\n' }), undefined)
  assert.equal(kindOf({ word: '', text: '# just a comment\n' }), undefined)
  assert.equal(kindOf({ word: '', text: 'session: { idle_timeot: 30m }\n' }), 'settings')
  assert.throws(() => kindOf({ word: '', text: 'a: [\n' }))
})

for (const block of blocks.filter(({ language }) => language === 'json'))
  test(`The JSON in ${block.page}, line ${block.line}, is valid`, () => {
    assert.doesNotThrow(() => JSON.parse(block.text))
  })

test('Every code block has a known language, or none', () => {
  const known = [
    'yaml',
    'json',
    'sh',
    'console',
    'html',
    'mermaid',
    'text',
    'js',
    'python',
    'go',
    'java',
    'toml',
    'ini',
    'apache',
    'nginx',
    'promql',
    'php',
    'python',
    'xml',
    'dockerfile',
    '',
  ]
  const unknown = blocks.filter(({ language }) => !known.includes(language))

  assert.deepEqual(
    unknown.map(({ page, line, language }) => `${page}:${line}: ${language}`),
    [],
  )
})
