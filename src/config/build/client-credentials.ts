import { createPrivateKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import { readClientAssertion } from '../client-assertion.ts'
import type { Setting } from '../document/report.ts'
import { namedFile, readSecretText } from '../document/secrets.ts'
import { decryptionAlgorithms } from '../encryption.ts'
import {
  type ClientKey,
  type DecryptionKey,
  type ProviderConfig,
  type SigningAlgorithm,
  signingAlgorithms,
} from '../model/provider.ts'
import type { ProviderClientKeySettings, ProviderDecryptionKeySettings, ProviderSettings } from '../settings.ts'

type Credentials = Pick<
  ProviderConfig,
  'client_secret' | 'clientKey' | 'clientAssertion' | 'decryptionKey' | 'token_endpoint_auth_method'
>

/** The credentials of the client: its secret, its keys, its JWT and its certificate. */
export function readCredentials(settings: ProviderSettings, at: Setting): Credentials {
  const { client_secret = '', clientKey } = settings
  const keyAt = at.below('client_key')
  const isForEndpoint = settings.clientAssertionAudience === 'token_endpoint' && settings.clientAssertion === undefined
  if (isForEndpoint && settings.profile === undefined && settings.token_endpoint_auth_method.endsWith('_jwt'))
    at.below('client_assertion_audience').warning(
      'is token_endpoint: the operator of that endpoint could use the JWT at another provider (RFC 7523bis)',
      'remove it if the provider accepts its issuer',
    )
  return {
    client_secret,
    ...readAssertion(settings, at),
    clientKey: clientKey && readClientKey(clientKey, keyAt, settings.profile !== undefined),
    decryptionKey: settings.decryptionKey && readDecryptionKey(settings, settings.decryptionKey, at),
  }
}

/**
 * The file of the assertion may come later than the start, and is renewed. So its faults are
 * warnings, and it is not watched.
 */
function readAssertion(
  { clientAssertion, token_endpoint_auth_method }: ProviderSettings,
  at: Setting,
): Pick<Credentials, 'clientAssertion' | 'token_endpoint_auth_method'> {
  if (clientAssertion?.file === undefined) return { clientAssertion: undefined, token_endpoint_auth_method }
  const [assertionAt, methodAt] = [at.below('client_assertion'), at.below('token_endpoint_auth_method')]
  const file = namedFile(clientAssertion.file, assertionAt.below('file'))
  if (methodAt.isSet && token_endpoint_auth_method === 'client_secret_basic')
    methodAt.error('does not fit client_assertion, which is private_key_jwt', 'remove it')
  const found = readClientAssertion(file, Date.now())
  if ('why' in found)
    assertionAt.below('file').warning(`${file} ${found.why}`, 'until this file has a valid JWT, nobody can sign in')
  at.report.secretFiles.push({ setting: assertionAt.below('file').path, file })
  return { clientAssertion: file, token_endpoint_auth_method: 'private_key_jwt' }
}

function readClientKey(settings: ProviderClientKeySettings, at: Setting, hasProfile: boolean): ClientKey | undefined {
  const text = readSecretText(settings, at)
  if (text === undefined) return undefined
  const { key, kid, alg } = parseKey(text) ?? {}
  if (key === undefined) {
    at.error(
      'is not a private key in PEM (PKCS #8, without a passphrase) or JWK',
      'generate one with: openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out client_key.pem',
    )
    return undefined
  }
  const allowed = algorithmsOf(key, hasProfile)
  const [usual] = allowed
  if (usual === undefined) {
    at.error(
      `is a key that the gateway cannot sign with: ${descriptionOf(key)}`,
      'use RSA with 2048 bits or more, P-256, P-384, P-521 or Ed25519',
    )
    return undefined
  }
  const ofJwk = alg === 'Ed25519' ? 'EdDSA' : alg
  const chosen = settings.alg ?? signingAlgorithms.find((name) => name === ofJwk) ?? usual
  if (!allowed.includes(chosen)) {
    const where = settings.alg === undefined ? at : at.below('alg')
    where.error(`is ${chosen}, which does not fit the key: ${descriptionOf(key)} signs ${allowed.join(', ')}`)
  }
  return { jwk: jwkOf(key), kid: settings.kid ?? kid, alg: chosen }
}

/** The private key that decrypts. Reports one that does not fit the registered algorithms. */
function readDecryptionKey(
  settings: ProviderSettings,
  own: ProviderDecryptionKeySettings,
  at: Setting,
): DecryptionKey | undefined {
  const keyAt = at.below('decryption_key')
  const algorithms = [...decryptionAlgorithms(settings)]
  const text = readSecretText(own, keyAt)
  if (text === undefined) return undefined
  const { key, kid } = parseKey(text) ?? {}
  if (key === undefined) {
    keyAt.error(
      'is not a private key in PEM (PKCS #8, without a passphrase) or JWK',
      'generate one with: openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:3072 -out decryption_key.pem',
    )
    return undefined
  }
  // RSA from 2048 bits and these curves fit both uses.
  const [usual] = algorithmsOf(key, false)
  const prefix = usual === 'RS256' ? 'RSA-OAEP' : usual?.startsWith('ES') === true ? 'ECDH-ES' : undefined
  const unfit = algorithms.find((alg) => prefix === undefined || !alg.startsWith(prefix))
  if (unfit !== undefined)
    keyAt.error(
      `does not fit ${unfit}: it is ${descriptionOf(key)}`,
      `use ${unfit.startsWith('RSA') ? 'RSA with 2048 bits or more' : 'P-256, P-384 or P-521'}`,
    )
  return { jwk: jwkOf(key), kid: own.kid ?? kid }
}

/** Without members that restrict the use of the key. */
function jwkOf(key: KeyObject): Readonly<Record<string, string>> {
  const { kty, crv, d, x, y, n, e, p, q, dp, dq, qi } = key.export({ format: 'jwk' })
  const jwk = { kty, crv, d, x, y, n, e, p, q, dp, dq, qi }
  return Object.fromEntries(Object.entries(jwk).filter((member): member is [string, string] => member[1] !== undefined))
}

function parseKey(
  text: string,
): { readonly key: KeyObject; readonly kid?: string | undefined; readonly alg?: string | undefined } | undefined {
  try {
    if (!text.trimStart().startsWith('{')) return { key: createPrivateKey(text) }
    const jwk = JSON.parse(text) as JsonWebKey
    const { kid, alg } = jwk as { readonly kid?: unknown; readonly alg?: unknown }
    const textOf = (value: unknown) => (typeof value === 'string' ? value : undefined)
    return { key: createPrivateKey({ key: jwk, format: 'jwk' }), kid: textOf(kid), alg: textOf(alg) }
  } catch {
    return undefined
  }
}

/** The algorithms of a key, the usual one first; empty when the gateway cannot sign with it. */
function algorithmsOf(
  { asymmetricKeyType, asymmetricKeyDetails }: KeyObject,
  hasProfile: boolean,
): readonly SigningAlgorithm[] {
  switch (asymmetricKeyType) {
    case 'rsa': {
      if ((asymmetricKeyDetails?.modulusLength ?? 0) < 2048) return []
      // Every provider knows RS256 (OpenID Connect Core §15.1). FAPI 2.0 §5.4.1 forbids it.
      const usual = hasProfile ? 'PS256' : 'RS256'
      return [...new Set<SigningAlgorithm>([usual, 'RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'])]
    }
    case 'ec':
      return curves.get(asymmetricKeyDetails?.namedCurve ?? '') ?? []
    case 'ed25519':
      return ['EdDSA']
    default:
      return []
  }
}

/** The names of OpenSSL for the curves of RFC 7518 §3.4. */
const curves: ReadonlyMap<string, readonly SigningAlgorithm[]> = new Map([
  ['prime256v1', ['ES256']],
  ['secp384r1', ['ES384']],
  ['secp521r1', ['ES512']],
])

function descriptionOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): string {
  const detail = asymmetricKeyDetails?.namedCurve ?? asymmetricKeyDetails?.modulusLength
  return `${asymmetricKeyType ?? 'unknown'}${detail === undefined ? '' : ` ${detail}`}`
}
