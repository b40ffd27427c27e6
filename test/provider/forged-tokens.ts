import { hmacJwt, part, ecKey, jwt, rsaKey, type Json, type SigningProvider } from '../support/signing-provider.ts'

const stranger = rsaKey('one')
const weak = rsaKey('weak', 1024)
const elliptic = ecKey('elliptic')

/**
 * What nobody but the provider could have signed, and what the provider has not signed for us in
 * the agreed way.
 */
export const forgeries: readonly (readonly [
  why: string,
  forge: (claims: Json, provider: SigningProvider) => string,
])[] = [
  ['it is not signed', (claims) => `${part({ alg: 'none' })}.${part(claims)}.`],
  ['it is not signed and writes that in capitals', (claims) => `${part({ alg: 'NONE' })}.${part(claims)}.`],
  ['it has a signature, but says that it has none', (claims, { key }) => jwt(claims, key, { alg: 'none' })],
  ['the signature was cut off', (claims, { key }) => jwt(claims, key).replace(/[^.]*$/, '')],
  [
    'it is signed with the client secret',
    (claims, { config }) => hmacJwt(claims, config.client_secret, { kid: 'one' }),
  ],
  [
    'it is signed with the public key as a secret',
    (claims, { key }) => hmacJwt(claims, key.publicKey.export({ type: 'spki', format: 'pem' }), { kid: 'one' }),
  ],
  [
    'it is signed with another algorithm than the registered one, by a key of the provider',
    (claims, provider) => {
      provider.publish(provider.key.jwk, elliptic.jwk)
      return jwt(claims, elliptic)
    },
  ],
  ['its algorithm is changed in name only', (claims, { key }) => jwt(claims, key, { alg: 'PS256' })],
  ['another key of the same name has signed it', (claims) => jwt(claims, stranger)],
  ['it brings its key along', (claims) => jwt(claims, stranger, { jwk: stranger.jwk })],
  [
    'it says where its key is',
    (claims, { issuer }) => jwt(claims, stranger, { jku: `${issuer}/strange-keys`, x5u: `${issuer}/strange-keys` }),
  ],
  ['nobody knows its kid', (claims) => jwt(claims, stranger, { kid: 'never-heard-of' })],
  [
    'the key is too short to prove anything',
    (claims, provider) => {
      provider.publish(weak.jwk)
      return jwt(claims, weak)
    },
  ],
  [
    'the key is for encryption',
    (claims, provider) => {
      provider.publish({ ...provider.key.jwk, use: 'enc', alg: undefined })
      return jwt(claims, provider.key)
    },
  ],
  [
    'what was signed is not what it says',
    (claims, { key }) => {
      const [header, , signature] = jwt(claims, key).split('.')
      return `${header}.${part({ ...claims, sub: 'somebody-else' })}.${signature}`
    },
  ],
  ['it demands an extension that nobody knows', (claims, { key }) => jwt(claims, key, { crit: ['exp2'], exp2: 1 })],
  ['its payload is not encoded', (claims, { key }) => jwt(claims, key, { crit: ['b64'], b64: false })],
  ['it is encrypted', (claims, { key }) => `${jwt(claims, key)}.AAAA.AAAA`],
  ['its payload is a list', (_claims, { key }) => jwt([], key)],
  ['its payload is not JSON', (_claims, { key }) => jwt('{"sub":', key)],
  ['it is no token at all', () => 'garbage'],
  ['it is empty', () => ''],
  ['it is three empty parts', () => '..'],
]

/** Claims that no token of the provider may have, whatever it is for. */
export const wrongClaims: readonly (readonly [why: string, claims: (at: number, issuer: string) => Json])[] = [
  ['"iss" is missing', () => ({ iss: undefined })],
  ['"iss" is another', () => ({ iss: 'https://id.example.com' })],
  ['"iss" has a slash too many', (_at, issuer) => ({ iss: `${issuer}/` })],
  ['"iss" is a list', (_at, issuer) => ({ iss: [issuer] })],
  ['"aud" is missing', () => ({ aud: undefined })],
  ['"aud" is another', () => ({ aud: 'billing' })],
  ['"aud" begins like us', () => ({ aud: 'orders-2' })],
  ['"aud" is an empty list', () => ({ aud: [] })],
  ['"aud" lists others only', () => ({ aud: ['billing', 'Orders'] })],
  ['"exp" has passed', (at) => ({ exp: at - 31 })],
  ['"exp" is nothing', () => ({ exp: null })],
  ['"exp" is text', (at) => ({ exp: String(at + 120) })],
  ['"iat" is missing', () => ({ iat: undefined })],
  ['"iat" lies ahead', (at) => ({ iat: at + 31 })],
  ['"iat" is text', (at) => ({ iat: String(at) })],
  ['"iat" is nothing', () => ({ iat: null })],
  ['"nbf" lies ahead', (at) => ({ nbf: at + 31 })],
  ['"sub" is empty', () => ({ sub: '' })],
  ['"sub" is a number', () => ({ sub: 42 })],
  ['"sub" is a list', () => ({ sub: ['jane'] })],
  ['"sub" has no end', () => ({ sub: 'x'.repeat(5000) })],
  ['"sid" is a number', () => ({ sid: 7 })],
  ['"sid" is empty', () => ({ sid: '' })],
]
