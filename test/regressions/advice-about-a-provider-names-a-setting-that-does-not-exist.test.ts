import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { examine } from '../../packages/doctor/examine.ts'
import { loadConfig } from '../../src/config/load.ts'
import { inSettingsOf } from '../../src/config/provider-setting.ts'
import type { Log, LogFields } from '../../src/observe/log.ts'
import { providerLog } from '../../src/server/realm.ts'
import { secrets } from '../doctor/support.ts'
import { folderWith } from '../support/command-line.ts'
import { freePort } from '../support/free-port.ts'

const url = async () => `http://127.0.0.1:${await freePort()}`

test('With several providers, doctor names each provider and its own settings', async (t) => {
  const yaml = `version: 1
external_url: ${await url()}
providers:
  staff: { issuer: ${await url()}, client_id: orders, client_secret: { env: CLIENT_SECRET } }
  partners: { issuer: ${await url()}, client_id: orders, client_secret: { env: CLIENT_SECRET } }
session: { keys: [{ env: SESSION_KEY }], store: memory }
upstreams: { orders: { url: ${await url()} } }
`
  const loaded = loadConfig(join(folderWith(t, { 'gateway.yaml': yaml }), 'gateway.yaml'), secrets)
  assert.ok(loaded.ok)

  const subjects = await examine({ config: loaded.config, secretFiles: [], env: {}, claims: undefined })

  for (const name of ['staff', 'partners']) {
    const about = subjects.find(({ subject }) => subject.startsWith(`provider ${name}, http://127.0.0.1:`))
    assert.ok(about, subjects.map(({ subject }) => subject).join('\n'))
    const advice = about.findings.map(({ todo = '' }) => todo).join('\n')
    assert.match(advice, new RegExp(`\\bproviders\\.${name}\\.issuer\\b`))
    assert.doesNotMatch(advice, /\bprovider\./)
  }
})

test('With several providers, the log names the provider and its own settings', () => {
  const lines: (readonly [string, LogFields | undefined])[] = []
  const write = (message: string, fields?: LogFields) => void lines.push([message, fields])
  const log: Log = { debug: write, info: write, warn: write, error: write, announce: write }
  const config = { name: 'staff', setting: 'providers.staff' } as Parameters<typeof providerLog>[1]

  providerLog(log, config).warn('provider.scope_narrowed', { hint: 'Remove them from provider.scopes.' })
  providerLog(log, { ...config, setting: 'provider' }).warn('provider.found', { hint: 'Check provider.issuer.' })

  assert.deepEqual(lines, [
    ['provider.scope_narrowed', { provider: 'staff', hint: 'Remove them from providers.staff.scopes.' }],
    ['provider.found', { hint: 'Check provider.issuer.' }],
  ])
})

test('The name of a log message is no setting', () => {
  const advice = 'if the log has provider.no_refresh_token, set provider.authorization_params'

  assert.equal(
    inSettingsOf({ setting: 'providers.staff' }, advice),
    'if the log has provider.no_refresh_token, set providers.staff.authorization_params',
  )
})
