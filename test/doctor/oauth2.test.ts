import assert from 'node:assert/strict'
import { test } from 'node:test'
import { providerFindings } from '../../packages/doctor/provider.ts'
import { registrationOf } from '../../src/config/registration.ts'
import { examineProvider } from '../../src/provider/examine.ts'
import { startGitHub } from '../support/github.ts'
import { assertUseful, configOf, finding, secrets } from './support.ts'

for (const [what, secret, level] of [
  ['that accepts the client', secrets.CLIENT_SECRET, 'ok'],
  ['with another secret', 'another secret', 'fault'],
] as const)
  test(`the findings about a provider without ID Tokens ${what}`, async (t) => {
    const github = await startGitHub(t, { id: 'orders', secret })
    const endpoints = `authorization_endpoint: ${github.origin}/login/oauth/authorize, token_endpoint: ${github.origin}/login/oauth/access_token, userinfo_endpoint: ${github.origin}/user`
    const config = configOf(t, {
      issuer: `${github.origin}/login/oauth`,
      provider: `kind: oauth2
  subject: id
  token_endpoint_auth_method: client_secret_post
  metadata: { ${endpoints} }`,
    })
    const [provider] = config.providers

    const facts = await examineProvider(provider, registrationOf(provider, config).redirect_uris)
    const findings = providerFindings(facts, provider, config.upstreams)

    assertUseful(findings)
    assert.equal(finding(findings, 'provider.client').level, level)
    assert.equal(finding(findings, 'provider.oauth2').level, 'warning')
    assert.ok(!findings.some(({ id }) => /keys|userinfo|logout|end_session/.test(id)))
  })
