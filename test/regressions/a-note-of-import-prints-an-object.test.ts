import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readFlatToml } from '../../src/setup/flat-toml.ts'
import { translate } from '../../src/setup/oauth2-proxy.ts'

for (const [name, issuer, reason] of [
  ['Keycloak', 'https://id.example.com/realms/staff', /Keycloak replaces the single sign-on session/],
  ['Google', 'https://accounts.google.com', /Google rejects offline_access/],
] as const)
  test(`The note about offline_access at ${name} contains the reason`, () => {
    const toml = `provider = "oidc"\noidc_issuer_url = "${issuer}"\nscope = "openid offline_access"\n`

    const { notes } = translate(readFlatToml(toml), 'https://orders.example.com')

    assert.match(notes.find(({ option }) => option === 'scope')?.text ?? '', reason)
    for (const { text } of notes) assert.doesNotMatch(text, /\[object|undefined/)
  })
