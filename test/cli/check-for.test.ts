import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { check } from '../../src/cli/check.ts'
import { Report } from '../../src/config/document/report.ts'
import { parseKnownVersion, reportNewer } from '../../src/config/setting-versions.ts'
import { version } from '../../src/core/version.ts'
import { folderWith, recordingTerminal } from '../support/command-line.ts'

const env = { CLIENT_SECRET: 'correct horse battery' }
const yaml = `version: 1
external_url: https://orders.example.com
provider: { issuer: https://id.example.com, client_id: orders, client_secret: { env: CLIENT_SECRET } }
upstreams: { orders: { url: http://127.0.0.1:3000 } }
`

test('check --for names each setting that the version does not have, wherever it is', () => {
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
})

test('check --for accepts the versions up to this one', async (t) => {
  const file = join(folderWith(t, { 'gateway.yaml': yaml }), 'gateway.yaml')
  const { terminal, said } = recordingTerminal(env)
  assert.equal(parseKnownVersion(version), version)
  assert.throws(() => parseKnownVersion('99.0.0'), /this is Gatehouse .*, which does not know 99\.0\.0/)
  assert.throws(() => parseKnownVersion('0.0.9'), /there is no version before 0\.1\.0/)
  for (const text of ['', '1', 'v0.1.0', '0.1.0-rc.1', '0.1.0.0', '٠.١.٠'])
    assert.throws(() => parseKnownVersion(text), /must be a version/)
  assert.equal(await check({ ...terminal, file }, 'text', { version: '0.1.0' }), 0)
  assert.match(said.out, /is valid for Gatehouse 0\.1\.0/)
})
