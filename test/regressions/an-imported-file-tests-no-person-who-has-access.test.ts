import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readFlatToml } from '../../packages/import/common/flat-toml.ts'
import { translate } from '../../packages/import/oauth2-proxy/oauth2-proxy.ts'

for (const [provider, options] of [
  ['keycloak-oidc', 'email_domains = ["example.com", "example.org"]\nallowed_roles = ["orders", "app:admin"]'],
  ['keycloak-oidc', 'email_domains = ["*"]\nallowed_roles = ["orders.example.com:admin"]'],
  ['keycloak-oidc', 'email_domains = ["*"]\nallowed_roles = ["orders"]\nallowed_groups = ["/staff"]'],
  ['oidc', 'email_domains = ["example.com"]\nallowed_roles = ["orders"]'],
  ['oidc', 'email_domains = ["example.com"]\nkeycloak_groups = ["/staff"]'],
] as const)
  test(`The file of import tests a person who has access, and others: ${provider}, ${options}`, () => {
    const text = `
provider = "${provider}"
oidc_issuer_url = "https://id.example.com/realms/main"
client_id = "orders"
client_secret = "hunter2"
cookie_secret = "hunter2"
redirect_url = "https://orders.example.com/oauth2/callback"
upstreams = ["http://127.0.0.1:3000/"]
${options}
`
    const { yaml } = translate(readFlatToml(text), undefined)

    assert.match(yaml, /^ +- \{ as: .*, get: \/, expect: pass \}$/m)
    assert.match(yaml, /^ +- \{ as: .*, get: \/, expect: forbidden \}$/m)
  })
