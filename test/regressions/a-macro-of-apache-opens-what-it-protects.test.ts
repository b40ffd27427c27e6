import assert from 'node:assert/strict'
import { test } from 'node:test'
import { translateApache } from '../../src/setup/mod-auth-openidc.ts'

test('A file of Apache with a macro denies all people until an operator has written what it does', () => {
  const text = `
<Macro Guard $path>
  <Location $path>
    AuthType openid-connect
    Require claim groups:staff
  </Location>
</Macro>
<VirtualHost *:443>
  ServerName orders.example.com
  OIDCProviderMetadataURL https://id.example.com/.well-known/openid-configuration
  OIDCClientID orders
  OIDCRedirectURI /oidc/callback
  Use Guard /admin
  ProxyPass / http://127.0.0.1:3000/
</VirtualHost>
`
  const { yaml, notes } = translateApache([{ name: 'site.conf', text }], [], undefined)

  assert.match(yaml, /Denies all people until this is decided:\n +# - Use: the macro Guard is not expanded/)
  assert.deepEqual(
    notes.filter(({ option }) => /^(?:use|macro)$/i.test(option)).map(({ level }) => level),
    ['decide'],
  )
})
