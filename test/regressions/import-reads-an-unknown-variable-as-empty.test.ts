import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readOptionsOf } from '../../src/setup/oauth2-proxy-sources.ts'
import { translate } from '../../src/setup/oauth2-proxy.ts'

test('A restriction whose value comes from the environment of Compose denies all people', () => {
  const compose = `services:
  gate:
    image: oauth2-proxy
    environment:
      - OAUTH2_PROXY_ALLOWED_GROUPS
      - OAUTH2_PROXY_EMAIL_DOMAINS=*
      - OAUTH2_PROXY_PROVIDER=oidc
      - OAUTH2_PROXY_OIDC_ISSUER_URL=https://id.example.com
      - OAUTH2_PROXY_CLIENT_ID=orders
      - OAUTH2_PROXY_CLIENT_SECRET=x
      - OAUTH2_PROXY_COOKIE_SECRET=x
`

  const { yaml } = translate(readOptionsOf([{ name: 'compose.yaml', text: compose }]), 'https://orders.example.com')

  assert.match(yaml, /# Denies all people until this is decided:\n +# - allowed_groups: the value is a variable/)
})
