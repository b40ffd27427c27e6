import { createPrivateKey, generateKeyPair, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import { decryptionAlgorithms } from '../config/encryption.ts'
import type { KeyManagementAlgorithm, ProviderConfig } from '../config/model/provider.ts'
import type { EndpointRequest } from '../http/endpoint-request.ts'
import { json, type Response } from '../http/response.ts'
import { publicJwkOf, type RotatingKey, rotatingKey, thumbprint } from './rotating-key.ts'
import { type KeyPurpose, publicKeysMaxAge, RotatingKeys, type RotatingKeysParts } from './rotating-keys.ts'

const dayMs = 24 * 3_600_000
/** How long a key is published until the next one takes its place, in ms. */
export const rotateEveryMs = 30 * dayMs
/** How long a key decrypts after it left the JWKS, in ms: providers may keep a JWKS for days. */
export const retainedMs = 7 * dayMs

const generate = promisify(generateKeyPair)

async function createDecryptionKey(alg: KeyManagementAlgorithm, usedFrom: number): Promise<RotatingKey> {
  const { privateKey } = alg.startsWith('RSA')
    ? await generate('rsa', { modulusLength: 2048 })
    : await generate('ec', { namedCurve: 'P-256' })
  return rotatingKey(alg, usedFrom, privateKey)
}

const purpose: KeyPurpose<KeyManagementAlgorithm> = {
  name: 'decryption keys',
  use: 'enc',
  retainedMs,
  create: createDecryptionKey,
  events: {
    created: 'decryption_key.created',
    rotated: 'decryption_key.rotated',
    notRead: 'decryption_keys.not_read',
    unreadable: 'decryption_keys.unreadable',
  },
}

/** The key of `provider.decryption_key`. */
interface ConfiguredKey {
  readonly kid: string
  readonly privateKey: KeyObject
}

/**
 * The keys of this client with which a provider encrypts: those that replace themselves, or the one
 * of the configuration.
 */
export class DecryptionKeys {
  readonly #config: ProviderConfig
  readonly #rotating: RotatingKeys<KeyManagementAlgorithm>
  readonly #configured: ConfiguredKey | undefined

  constructor(
    config: ProviderConfig,
    parts: Omit<RotatingKeysParts<KeyManagementAlgorithm>, 'purpose' | 'config' | 'algorithms'>,
  ) {
    this.#config = config
    this.#configured = config.decryptionKey && configuredKey(config.decryptionKey)
    const algorithms = this.#configured === undefined ? decryptionAlgorithms(config) : new Set<never>()
    this.#rotating = new RotatingKeys({ ...parts, purpose, config: { rotateEveryMs }, algorithms })
  }

  start(): void {
    this.#rotating.start()
  }

  stop(): void {
    this.#rotating.stop()
  }

  /** Adds the keys of the previous generation. */
  takeOver(other: DecryptionKeys): void {
    this.#rotating.takeOver(other.#rotating)
  }

  get isReady(): boolean {
    return this.#rotating.isReady
  }

  /** @throws {GatewayError} `ERR_STORE_UNAVAILABLE` */
  ready(): Promise<void> {
    return this.#rotating.ready()
  }

  /**
   * The private key that a token names. There are several rotating keys, so a token has to name its
   * key (OpenID Connect Core §10.2).
   * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
   */
  async find(alg: KeyManagementAlgorithm, kid: string | undefined): Promise<KeyObject | undefined> {
    const configured = this.#configured
    if (configured !== undefined) return (kid ?? configured.kid) === configured.kid ? configured.privateKey : undefined
    const key = kid === undefined ? undefined : await this.#rotating.find(kid)
    return key?.alg === alg ? key.privateKey : undefined
  }

  /**
   * The public keys of this client: a client has one JWKS, so it contains that of `client_key` too.
   * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
   */
  async published(): Promise<readonly object[]> {
    const { clientKey } = this.#config
    const own = clientKey && {
      ...publicJwkOf(privateKeyOf(clientKey.jwk)),
      kid: clientKey.kid,
      alg: clientKey.alg,
      use: 'sig',
    }
    return [...(own === undefined ? [] : [own]), ...(await this.#encryptionKeys())]
  }

  #encryptionKeys(): Promise<readonly object[]> | readonly object[] {
    const configured = this.#configured
    if (configured === undefined) return this.#rotating.published()
    const [alg, ...others] = decryptionAlgorithms(this.#config)
    const { kid, privateKey } = configured
    return [{ ...publicJwkOf(privateKey), kid, use: 'enc', ...(others.length === 0 && { alg }) }]
  }
}

function configuredKey({ jwk, kid }: NonNullable<ProviderConfig['decryptionKey']>): ConfiguredKey {
  const privateKey = privateKeyOf(jwk)
  return { kid: kid ?? thumbprint(publicJwkOf(privateKey)), privateKey }
}

function privateKeyOf(jwk: Readonly<Record<string, string>>): KeyObject {
  return createPrivateKey({ key: { ...jwk }, format: 'jwk' })
}

export interface ClientJwksParts {
  readonly decryptionKeys: Pick<DecryptionKeys, 'published'>
}

/** `GET client-jwks.json`: the `jwks_uri` of this client. Throws `ERR_STORE_UNAVAILABLE`. */
export async function clientJwks(_request: EndpointRequest, { decryptionKeys }: ClientJwksParts): Promise<Response> {
  return json(200, { keys: await decryptionKeys.published() }, publicKeysMaxAge)
}
