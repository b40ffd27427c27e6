import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

const root = new URL('../../', import.meta.url)

test('The types of the settings are those of the schema; `npm run reference` writes them', () => {
  const generated = execFileSync(process.execPath, ['.ci/settings.mjs'], { cwd: root, encoding: 'utf8' })

  assert.equal(readFileSync(new URL('src/config/settings.ts', root), 'utf8'), generated)
})

/** Settings whose field in the model has another name or shape; `src/config/model.ts` says why. */
const exceptions = [
  ...['include', 'env', 'memory', 'redis', 'cluster', 'ca_file', 'mail', 'basic', 'preset', 'provider'],
  ...['days', 'to', 'zone', 'acr_values'],
  ...['get', 'post', 'put', 'patch', 'delete', 'head', 'options'],
  ...['client_id', 'client_secret', 'token_endpoint_auth_method', 'response_mode', 'id_token_signed_response_alg'],
  // Metadata of a provider: OpenID Connect Discovery 1.0 §3.
  ...['authorization_endpoint', 'token_endpoint', 'userinfo_endpoint', 'jwks_uri', 'end_session_endpoint'],
  ...['revocation_endpoint', 'pushed_authorization_request_endpoint', 'mtls_endpoint_aliases'],
  ...['require_pushed_authorization_requests', 'require_signed_request_object', 'scopes_supported'],
  ...['authorization_response_iss_parameter_supported', 'id_token_signing_alg_values_supported'],
  ...['acr_values_supported', 'client_credentials'],
]

test('Each setting has the same name in the configuration that the gateway uses', () => {
  const model = readFileSync(new URL('src/config/model.ts', root), 'utf8')
  const fields = new Set([...model.matchAll(/readonly (\w+)\??:/g)].map(([, name]) => name))
  const settings = readFileSync(new URL('src/config/settings.ts', root), 'utf8')
  const names = [...settings.matchAll(/readonly (\w+)\??:/g)].map(([, name = '']) => name)

  const renamed = new Set(
    names.filter((name) => {
      const field = name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
      return !['', 'Ms', 'Bytes', 'BytesPerSecond'].some((unit) => fields.has(`${field}${unit}`))
    }),
  )

  assert.deepEqual([...renamed].toSorted(), exceptions.toSorted())
})
