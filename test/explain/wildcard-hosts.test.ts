import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadConfig } from '../../src/config/load.ts'
import { registrationsText } from '../../src/config/registration.ts'
import { explain } from '../../src/explain/decision.ts'
import { failingTests } from '../../src/explain/embedded-tests.ts'
import { personWith } from '../../src/explain/trial.ts'
import { folderWith } from '../support/command-line.ts'
import { formatDiagnostics } from '../support/diagnostics.ts'
import { secrets } from '../support/world.ts'

const yaml = `version: 1
external_url: https://sso.example.com
provider: { issuer: https://id.example.com, client_id: orders, client_secret: { env: CLIENT_SECRET } }
session: { cookie: { domain: example.com } }
upstreams:
  apps:
    external_url: https://*.apps.example.com
    url: http://127.0.0.1:3001
    headers: { X-Remote-User: sub }
    tests:
      - { get: /, expect: sign_in }
      - { get: /, host: notes.example.com, expect: sign_in }
      - { get: /, host: wiki.apps.example.com, expect: sign_in }
      - { get: /, host: notes.apps.example.com, expect: sign_in }
      - { as: { sub: jane }, get: /, host: notes.apps.example.com, expect: pass, headers: { X-Remote-User: jane } }
  wiki:
    external_url: https://wiki.apps.example.com
    url: http://127.0.0.1:3002
    tests:
      - { get: /, expect: sign_in }
`

function configOf(t: Parameters<typeof folderWith>[0]) {
  const loaded = loadConfig(`${folderWith(t, { 'gateway.yaml': yaml })}/gateway.yaml`, secrets)
  assert.ok(loaded.ok, loaded.ok ? '' : formatDiagnostics(loaded.diagnostics))
  return loaded.config
}

test('A test of an upstream with a wildcard says which host it is about', (t) => {
  assert.deepEqual(
    failingTests(configOf(t)).map(({ message }) => message),
    [
      'GET /: the upstream serves each host of *.apps.example.com: write the host of the request, such as host: wiki.apps.example.com',
      'GET /: no upstream serves this path at notes.example.com',
      'GET /: upstreams.wiki serves this path: move the test there',
    ],
  )
})

test('With one session for a domain, one URI of each kind is to be registered', (t) => {
  const uris = [...registrationsText(configOf(t)).matchAll(/https:\/\/[^\s]*gatehouse[^\s]*/g)].map(([uri]) => uri)

  assert.deepEqual(
    uris,
    ['callback', 'signed-out', 'backchannel-logout', 'initiate-login'].map(
      (name) => `https://sso.example.com/.gatehouse/${name}`,
    ),
  )
})

test('explain shows that a sign-in begins at external_url', (t) => {
  const config = configOf(t)
  const rawHeaders = ['Host', 'notes.apps.example.com', 'Accept', 'text/html']
  const request = { method: 'GET', target: '/a', rawHeaders, peer: undefined }

  const text = JSON.stringify(explain(request, personWith(undefined, config), config))

  assert.match(
    text,
    /https:\/\/sso\.example\.com\/\.gatehouse\/sign-in\?return_to=https%3A%2F%2Fnotes\.apps\.example\.com%2Fa/,
  )
})
