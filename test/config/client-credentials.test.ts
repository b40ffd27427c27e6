import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { loadConfig } from '../../src/config/load.ts'
import { issueCertificates } from '../support/certificates.ts'
import { clientKeyPair } from '../support/client-keys.ts'
import { folderWith } from '../support/command-line.ts'
import { formatDiagnostics } from '../support/diagnostics.ts'

function load(
  t: TestContext,
  provider: string,
  files: Readonly<Record<string, string>>,
  env: Record<string, string> = {},
) {
  const folder = folderWith(t, {
    ...files,
    'gateway.yaml': `version: 1
external_url: https://orders.example.com
provider:
  issuer: https://id.example.com
  client_id: orders
  ${provider}
upstreams: { orders: { url: 'http://127.0.0.1:3000' } }
`,
  })
  return { folder, result: loadConfig(join(folder, 'gateway.yaml'), env) }
}

const withKey = (key: string) => `token_endpoint_auth_method: private_key_jwt\n  client_key: { ${key} }`

function keyOf(t: TestContext, setting: string, files: Record<string, string>, env: Record<string, string> = {}) {
  const { result } = load(t, withKey(setting), files, env)
  assert.ok(result.ok, result.ok ? '' : formatDiagnostics(result.diagnostics))
  return result.config.providers[0].clientKey
}

for (const [alg, expected] of [
  ['ES256', 'ES256'],
  ['EdDSA', 'EdDSA'],
  ['RS256', 'RS256'],
] as const)
  test(`The algorithm follows from the key: ${alg}`, (t) => {
    assert.equal(keyOf(t, 'file: k.pem', { 'k.pem': clientKeyPair(alg).pem })?.alg, expected)
  })

test('A JWK brings its kid and its algorithm, and the setting replaces them', (t) => {
  const files = { 'k.json': JSON.stringify(clientKeyPair('PS256', 'of-the-jwk').privateJwk) }

  const { kid, alg } = keyOf(t, 'file: k.json', files) ?? {}
  const set = keyOf(t, 'file: k.json, kid: other, alg: RS512', files)

  assert.deepEqual([kid, alg], ['of-the-jwk', 'PS256'])
  assert.deepEqual([set?.kid, set?.alg], ['other', 'RS512'])
})

test('A key can be in an environment variable', (t) => {
  assert.equal(keyOf(t, 'env: KEY', {}, { KEY: clientKeyPair('ES256').pem })?.alg, 'ES256')
})

const { privateKey: shortRsa } = generateKeyPairSync('rsa', { modulusLength: 1024 })
const { privateKey: otherCurve } = generateKeyPairSync('ec', { namedCurve: 'secp256k1' })
const pemOf = (key: typeof shortRsa) => String(key.export({ type: 'pkcs8', format: 'pem' }))
const { publicJwk, pem } = clientKeyPair('ES256')

for (const [what, key, setting, said] of [
  ['a short RSA key', pemOf(shortRsa), '', /cannot sign with: rsa 1024/],
  ['another curve', pemOf(otherCurve), '', /cannot sign with: ec secp256k1/],
  ['a public key', JSON.stringify(publicJwk), '', /is not a private key/],
  ['no key', 'swordfish', '', /is not a private key/],
  ['an algorithm that does not fit', pem, ', alg: PS256', /client_key\.alg: is PS256, which does not fit.*ES256/],
] as const)
  test(`A client key is refused: ${what}`, (t) => {
    const { result } = load(t, withKey(`file: k.pem${setting}`), { 'k.pem': key })
    const text = result.ok ? 'ok' : formatDiagnostics(result.diagnostics)

    assert.match(text, said)
    assert.doesNotMatch(text, /swordfish|PRIVATE KEY/)
  })

test('The files of the key and the certificate are watched, and known as secrets', (t) => {
  const { client } = issueCertificates()
  const { folder, result } = load(
    t,
    `${withKey('file: k.pem')}\n  client_certificate: { cert_file: c.crt, key_file: c.key }`,
    { 'k.pem': pem, 'c.crt': client.cert, 'c.key': client.key },
  )

  assert.ok(result.ok)
  for (const file of ['k.pem', 'c.crt', 'c.key']) assert.ok(result.files.has(join(folder, file)), file)
  assert.deepEqual(
    result.secretFiles.map(({ setting }) => setting),
    ['provider.client_certificate.key_file', 'provider.client_key.file'],
  )
})
