import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfig } from '../../src/config/load.ts'
import type { UpstreamConfig } from '../../src/config/model/upstream.ts'
import { formatDiagnostics } from './diagnostics.ts'

/** The upstream `orders` of a file, as the gateway reads it: a flow mapping of its settings. */
export function loadedUpstream(settings: string): UpstreamConfig {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-upstream-'))
  const file = join(folder, 'gateway.yaml')
  writeFileSync(
    file,
    `version: 1
external_url: https://orders.example.com
provider: { issuer: https://id.example.com, client_id: orders, client_secret: { env: SECRET } }
session: { store: memory, keys: [{ env: KEY }] }
upstreams: { orders: ${settings} }
`,
  )
  const loaded = loadConfig(file, {
    SECRET: 'correct horse battery staple',
    KEY: Buffer.alloc(32, 1).toString('base64'),
  })
  rmSync(folder, { recursive: true })
  if (!loaded.ok) throw new Error(formatDiagnostics(loaded.diagnostics))
  const [upstream] = loaded.config.upstreams
  if (upstream === undefined) throw new Error('The file has no upstream.')
  return upstream
}
