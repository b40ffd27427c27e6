import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { readFlatToml } from '../../packages/import/common/flat-toml.ts'
import { translate } from '../../packages/import/oauth2-proxy/oauth2-proxy.ts'
import { loadConfig } from '../../src/config/load.ts'
import { secrets } from '../doctor/support.ts'
import { folderWith } from '../support/command-line.ts'
import { formatDiagnostics } from '../support/diagnostics.ts'

const narrow = /one page|is never reached|does not apply/

function checked(t: TestContext, yaml: string): string {
  const loaded = loadConfig(join(folderWith(t, { 'gateway.yaml': yaml }), 'gateway.yaml'), secrets)
  assert.ok(loaded.ok, loaded.ok ? '' : formatDiagnostics(loaded.diagnostics))
  return formatDiagnostics(loaded.warnings)
}

test('check warns that the pages below a protected page are open, and names the line to write', (t) => {
  const withRule = (path: string) => `version: 1
external_url: https://orders.example.com
provider: { issuer: https://id.example.com, client_id: orders, client_secret: { env: CLIENT_SECRET } }
upstreams:
  orders:
    url: http://127.0.0.1:3000
    rules: [{ path: ${path}, require: { claim: groups, any_of: [admins] } }]
`
  for (const path of ['/admin/', '/admin'])
    assert.match(
      checked(t, withRule(path)),
      /rules\[0\]\.path: is this one page, without the paths below it: \/admin\/x is open to everybody who is signed in\n +write \/admin\/\*/,
    )
  assert.doesNotMatch(checked(t, withRule('/admin/*')), narrow)
})

test('An imported configuration has no rule that protects one page only', (t) => {
  const { yaml } = translate(
    readFlatToml(`
provider = "oidc"
oidc_issuer_url = "https://id.example.com"
client_id = "orders"
redirect_url = "https://orders.example.com/oauth2/callback"
upstreams = ["http://127.0.0.1:3000/", "http://127.0.0.1:3001/reports", "http://127.0.0.1:3002/wiki/"]
email_domains = ["*"]
allowed_groups = ["staff"]
api_routes = ["^/api$", "^/wiki/api/"]
skip_auth_routes = ["GET=^/health$"]
`),
    undefined,
  )

  assert.match(yaml, /\/reports/)
  assert.doesNotMatch(checked(t, yaml), narrow)
})
