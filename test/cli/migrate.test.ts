import assert from 'node:assert/strict'
import { lstatSync, readdirSync, readFileSync, statSync, symlinkSync, chmodSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { check } from '../../src/cli/check.ts'
import { lineDiff } from '../../src/cli/line-diff.ts'
import { migrate } from '../../src/cli/migrate.ts'
import { Report } from '../../src/config/document/report.ts'
import { loadConfig } from '../../src/config/load.ts'
import {
  parseKnownVersion,
  readRenamed,
  type RenamedSetting,
  renamedSettings,
  reportNewer,
} from '../../src/config/setting-versions.ts'
import { version } from '../../src/core/version.ts'
import { folderWith, recordingTerminal } from '../support/command-line.ts'

const env = { CLIENT_SECRET: 'correct horse battery' }
/** Names that no version had: each way in which a setting can change. */
const renamed: readonly RenamedSetting[] = [
  { from: 'public_url', to: 'external_url', since: '0.0.2', until: '99.0.0' },
  { from: 'upstreams.*.wait', to: 'upstreams.*.response_timeout', since: '0.0.2', until: '99.0.0' },
  { from: 'timeouts.idle', to: 'session.idle_timeout', since: '0.0.2', until: '99.0.0' },
]
const yaml = `# Our gateway
version: 1
public_url:   https://orders.example.com # what people type
provider: { issuer: https://id.example.com, client_id: orders, client_secret: { env: CLIENT_SECRET } }
include: [wiki*.yaml]
upstreams:
  orders:
    url: http://127.0.0.1:3000
    # The reports are slow.
    wait: 90s # a minute and a half
`
const more = `wiki:
  url: http://127.0.0.1:3001
  path: /wiki/
  wait: 5s
`

function files(t: TestContext, text = yaml) {
  const folder = folderWith(t, { 'gateway.yaml': text, 'wiki.yaml': more })
  const { terminal, said } = recordingTerminal(env)
  return { folder, file: join(folder, 'gateway.yaml'), wiki: join(folder, 'wiki.yaml'), terminal, said }
}

test('Settings with a former name are understood, with a warning that says the new name and since when', (t) => {
  const { file } = files(t)

  const loaded = loadConfig(file, env, { renamed })

  assert.ok(loaded.ok, JSON.stringify(loaded))
  assert.equal(loaded.config.externalUrl.href, 'https://orders.example.com/')
  const { upstreams } = loaded.config
  assert.deepEqual(upstreams.map(({ name, responseTimeoutMs }) => [name, responseTimeoutMs]).toSorted(), [
    ['orders', 90_000],
    ['wiki', 5_000],
  ])
  const [first, ...others] = loaded.warnings
  assert.deepEqual(
    [first?.path, first?.line, first?.message, first?.hint],
    [
      'public_url',
      3,
      'was renamed in 0.0.2; 99.0.0 will not understand this name',
      'write external_url; "gatehouse migrate" rewrites the file',
    ],
  )
  assert.ok(others.some(({ path, hint }) => path === 'upstreams.wiki.wait' && hint?.includes('response_timeout')))
})

test('migrate changes the names and nothing else, in included files too', async (t) => {
  const { file, wiki, terminal, said } = files(t)

  assert.equal(await migrate({ ...terminal, file }, false, { renamed }), 0)

  assert.equal(readFileSync(file, 'utf8'), yaml, 'nothing is written without --write')
  assert.match(
    said.out,
    /^-public_url: {3}https:\/\/orders\.example\.com # what people type\n\+external_url: {3}https/m,
  )

  assert.equal(await migrate({ ...terminal, file }, true, { renamed }), 0)

  assert.equal(
    readFileSync(file, 'utf8'),
    yaml.replace('public_url', 'external_url').replace('wait: 90s', 'response_timeout: 90s'),
  )
  assert.equal(readFileSync(wiki, 'utf8'), more.replace('wait: 5s', 'response_timeout: 5s'))
  assert.deepEqual(loadConfig(file, env, { renamed }).renames, [])
})

test('A setting that moves into another map keeps its comments, and an empty map is removed', async (t) => {
  const { file, terminal } = files(t, `${yaml}timeouts:\n  # People go to lunch.\n  idle: 2h # two hours\n`)

  await migrate({ ...terminal, file }, true, { renamed })

  const text = readFileSync(file, 'utf8')
  assert.match(text, /session:\n {2}# People go to lunch\.\n {2}idle_timeout: 2h # two hours\n/)
  assert.doesNotMatch(text, /timeouts:/)
  for (const comment of [
    '# Our gateway',
    '# People go to lunch.',
    '# what people type',
    '# The reports are slow.',
    '# a minute and a half',
  ])
    assert.ok(text.includes(comment), comment)
  const loaded = loadConfig(file, env, { renamed })
  assert.ok(loaded.ok, JSON.stringify(loaded))
  assert.equal(loaded.config.session.idleTimeoutMs, 7_200_000)
})

test('migrate --write replaces the file behind a link in one step, and keeps its permissions', async (t) => {
  const { folder, file, terminal } = files(t)
  chmodSync(file, 0o640)
  const link = join(folder, 'link.yaml')
  symlinkSync(file, link)
  const before = statSync(file).ino

  await migrate({ ...terminal, file: link }, true, { renamed })

  assert.ok(lstatSync(link).isSymbolicLink())
  assert.equal(statSync(file).mode & 0o777, 0o640)
  assert.notEqual(statSync(file).ino, before)
  assert.deepEqual(readdirSync(folder).toSorted(), ['gateway.yaml', 'link.yaml', 'wiki.yaml'])
})

test('check prints what migrate would change, and counts it as no error', async (t) => {
  const { file, terminal, said } = files(t)

  assert.equal(await check({ ...terminal, file }, 'text', { renamed }), 0)

  assert.match(said.err, /gatehouse migrate would change:\n--- .*gateway\.yaml\n/)
  assert.match(said.err, /^\+ {4}response_timeout: 90s # a minute and a half$/m)
})

test('A name that is gone, and a setting with both names, are errors', (t) => {
  const { file } = files(t)
  const gone = renamed.map((one) => ({ ...one, until: '0.1.0' }))

  const refused = loadConfig(file, env, { renamed: gone })
  assert.ok(!refused.ok)
  assert.match(JSON.stringify(refused.diagnostics), /was renamed in 0\.0\.2, and 0\.1\.0 does not understand this name/)
  assert.equal(refused.renames.length, 3, 'migrate still rewrites them')

  const both = loadConfig(files(t, `${yaml}external_url: https://a.example.com\n`).file, env, { renamed })
  assert.ok(!both.ok)
  assert.match(JSON.stringify(both.diagnostics), /was renamed to external_url in 0\.0\.2, which is set too/)
})

test('check --for names each setting that the version does not have, wherever it is', () => {
  const report = new Report('gateway.yaml', {})
  const schema = {
    properties: {
      old: {},
      fresh: { since: '0.3.0' },
      list: { items: { properties: { inner: { since: '0.2.1' } } } },
      maps: { additionalProperties: { $ref: '#/definitions/one' } },
    },
    definitions: { one: { properties: { deep: { since: '1.0.0' } } } },
  }
  const document = { old: 1, fresh: 1, list: [{}, { inner: 1 }], maps: { any: { deep: 1, other: 1 } } }
  const needed = (readFor: string) => {
    const fresh = new Report('gateway.yaml', {})
    reportNewer(document, schema, fresh, readFor)
    return fresh.diagnostics.map(({ path, message }) => `${path}: ${message}`)
  }

  assert.deepEqual(needed('0.2.0').toSorted(), [
    'fresh: needs Gatehouse 0.3.0 or newer',
    'list.1.inner: needs Gatehouse 0.2.1 or newer',
    'maps.any.deep: needs Gatehouse 1.0.0 or newer',
  ])
  assert.deepEqual(needed('0.10.0'), ['maps.any.deep: needs Gatehouse 1.0.0 or newer'])
  assert.deepEqual(needed('1.0.0'), [])

  const former = { public_url: 'a' }
  readRenamed(former, report, { renamed, version: '0.0.1' })
  assert.deepEqual(report.diagnostics, [], 'before it was renamed, the former name is the right one')
})

test('check --for accepts the versions up to this one', async (t) => {
  const { file, terminal, said } = files(t, yaml.replace('public_url', 'external_url'))
  assert.equal(parseKnownVersion(version), version)
  assert.throws(() => parseKnownVersion('99.0.0'), /this is Gatehouse .*, which does not know 99\.0\.0/)
  assert.throws(() => parseKnownVersion('0.0.9'), /there is no version before 0\.1\.0/)
  for (const text of ['', '1', 'v0.1.0', '0.1.0-rc.1', '0.1.0.0', '٠.١.٠'])
    assert.throws(() => parseKnownVersion(text), /must be a version/)
  assert.equal(await check({ ...terminal, file }, 'text', { version: '0.1.0', renamed }), 0)
  assert.match(said.out, /is valid for Gatehouse 0\.1\.0/)
})

test('Each renamed setting has a former name that the schema lacks, and a present name that it has', () => {
  for (const { from, to, since, until } of renamedSettings) {
    assert.match(`${since} ${until}`, /^\d+\.\d+\.\d+ \d+\.\d+\.\d+$/)
    assert.equal(from.split('*').length, to.split('*').length)
  }
})

test('A difference has the lines that changed, and their numbers', () => {
  assert.equal(lineDiff('f', 'a\nb\nc\n', 'a\nB\nc\n'), '--- f\n+++ f\n@@ -2 +2 @@\n-b\n+B\n')
  assert.equal(lineDiff('f', 'a\nc\n', 'a\nb\nc\n'), '--- f\n+++ f\n@@ -1,0 +2 @@\n+b\n')
  assert.equal(lineDiff('f', 'a\nb\nb\nc\n', 'a\nc\n'), '--- f\n+++ f\n@@ -2,2 +1,0 @@\n-b\n-b\n')
  assert.equal(lineDiff('f', 'a\n', 'a\n'), '')
  const line = 'provider: { client_secret: hunter2horse }'
  assert.doesNotMatch(lineDiff('f', line, `${line} `), /hunter2/, 'the output of a build is stored')
})
