import assert from 'node:assert/strict'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { Finding } from '../../packages/doctor/finding.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { GatewayConfig } from '../../src/config/model/gateway.ts'
import { folderWith } from '../support/command-line.ts'
import { formatDiagnostics } from '../support/diagnostics.ts'

export const secrets = {
  CLIENT_SECRET: 'correct horse battery staple',
  SESSION_KEY: Buffer.alloc(32, 7).toString('base64'),
  REDIS_PASSWORD: 'a password of Redis',
  SIGNALS_AUTHORIZATION: 'Bearer the token of the stream',
}

export interface Settings {
  readonly externalUrl?: string
  readonly issuer?: string
  /** YAML below `provider:`, indented by two. */
  readonly provider?: string
  /** The value of `store:`. */
  readonly store?: string
  /** The value of `session.page`. */
  readonly page?: boolean
  /** YAML of the one upstream, indented by four. */
  readonly upstream?: string
  /** YAML at the top level. */
  readonly settings?: string
}

/** A configuration as a file would give it. */
export function configOf(t: TestContext, settings: Settings): GatewayConfig {
  const yaml = `version: 1
external_url: ${settings.externalUrl ?? 'https://orders.example.com'}
${settings.settings ?? ''}
provider:
  issuer: ${settings.issuer ?? 'https://id.example.com'}
  client_id: orders
  client_secret: { env: CLIENT_SECRET }
  ${settings.provider ?? ''}
session:
  keys: [{ env: SESSION_KEY }]
  store: ${settings.store ?? 'memory'}
  page: ${settings.page ?? false}
upstreams:
  orders:
    ${settings.upstream ?? 'url: http://127.0.0.1:3000'}
`
  const loaded = loadConfig(join(folderWith(t, { 'gateway.yaml': yaml }), 'gateway.yaml'), secrets)
  assert.ok(loaded.ok, loaded.ok ? '' : `${formatDiagnostics(loaded.diagnostics)}\n${yaml}`)
  return loaded.config
}

/** The one finding of this name. */
export function finding(findings: readonly Finding[], id: string): Finding {
  const found = findings.filter((one) => one.id === id)
  assert.equal(found.length, 1, `${id}: ${JSON.stringify(findings, null, 1)}`)
  return found[0] as Finding
}

/**
 * What is said has to be of use: what is no good comes with a reason and a remedy, and without a
 * secret.
 */
export function assertUseful(findings: readonly Finding[]): void {
  for (const { level, what, why, todo } of findings) {
    if (level !== 'ok') assert.ok(why !== undefined && todo !== undefined, what)
    for (const secret of Object.values(secrets)) assert.ok(!JSON.stringify([what, why, todo]).includes(secret), what)
    assert.doesNotMatch(`${what} ${why ?? ''} ${todo ?? ''}`, /undefined|NaN|\[object/)
  }
}
