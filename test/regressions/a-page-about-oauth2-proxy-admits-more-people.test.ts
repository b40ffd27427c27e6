import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { parse, stringify } from 'yaml'
import { loadConfig } from '../../src/config/load.ts'
import { failingTests } from '../../src/explain/embedded-tests.ts'
import { environment } from '../config/environment.ts'
import { pairsOf } from '../migrating/pairs.ts'
import { folderWith } from '../support/command-line.ts'
import { formatDiagnostics } from '../support/diagnostics.ts'
import { imported } from '../support/imported.ts'

const [typical] = pairsOf('oauth2-proxy.md', 'toml')
const url = 'https://orders.example.com'

/** Whom oauth2-proxy refuses, also with all domains: tried with 7.15.6. */
const refused = [
  { sub: 'ada', groups: ['staff'] },
  { sub: 'eve', groups: ['staff'], email: 'eve@example.com', email_verified: false },
].map((as) => ({ as, get: '/orders', expect: 'forbidden' }))

for (const from of ['page', 'import'] as const)
  test(`The ${from} denies people without a verified address`, async (t) => {
    assert.ok(typical)
    const folder = folderWith(t, { 'oauth2-proxy.cfg': typical.theirs })
    const said = await imported('oauth2-proxy', join(folder, 'oauth2-proxy.cfg'), '--url', url)
    const file = parse(from === 'page' ? typical.ours : said.out) as {
      provider: Record<string, unknown>
      session: Record<string, unknown>
      upstreams: Record<string, Record<string, unknown>>
    }
    file.provider['client_secret'] = { env: 'CLIENT_SECRET' }
    file.session['keys'] = [{ env: 'SESSION_KEY' }]
    for (const upstream of Object.values(file.upstreams)) upstream['tests'] = [...typicalTests(), ...refused]
    const written = folderWith(t, { 'gateway.yaml': stringify(file) })

    const loaded = loadConfig(join(written, 'gateway.yaml'), environment)

    assert.equal(loaded.ok ? formatDiagnostics(failingTests(loaded.config)) : formatDiagnostics(loaded.diagnostics), '')
  })

/** What the page says about the typical configuration. */
function typicalTests() {
  return (typical?.statements ?? []).map(({ as, method, path, expect }) => ({
    ...(as !== undefined && { as }),
    ...{ [method.toLowerCase()]: path, expect },
  }))
}
