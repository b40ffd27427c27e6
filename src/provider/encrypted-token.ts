import type { KeyObject } from 'node:crypto'
import { compactDecrypt, decodeProtectedHeader } from 'jose'
import {
  decryptionAlgorithms,
  type EncryptedKind,
  type Encryption,
  encryptionOf,
  type EncryptionSettings,
} from '../config/encryption.ts'
import type { KeyManagementAlgorithm } from '../config/model/provider.ts'
import { printable, reason } from '../core/errors.ts'

/** The longest token that is decrypted or verified, in characters. */
export const longestToken = 256 * 1024

/** The private keys of this client. */
export interface DecryptionKeys {
  /**
   * Resolves when there are keys.
   * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
   */
  ready(): Promise<void>
  /**
   * @param kid absent: the token names no key, so there has to be only one
   * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
   */
  find(alg: KeyManagementAlgorithm, kid: string | undefined): Promise<KeyObject | undefined>
}

/** Throws the error for a token that is refused. */
export type Refuse = (why: string, cause?: unknown) => never

/** Decrypts what a provider sends, with the algorithms that the client is registered with. */
export class Decryption {
  readonly #encryption: Readonly<Record<EncryptedKind, Encryption>>
  readonly #keys: DecryptionKeys
  readonly #isUsed: boolean

  constructor(config: EncryptionSettings, keys?: DecryptionKeys) {
    this.#encryption = {
      id_token: encryptionOf(config, 'id_token'),
      userinfo: encryptionOf(config, 'userinfo'),
      authorization: encryptionOf(config, 'authorization'),
    }
    this.#isUsed = decryptionAlgorithms(config).size > 0
    this.#keys = keys ?? { ready: async () => {}, find: async () => undefined }
  }

  /** @throws {GatewayError} `ERR_STORE_UNAVAILABLE` */
  async ready(): Promise<void> {
    if (this.#isUsed) await this.#keys.ready()
  }

  /**
   * Decrypts a nested JWT (RFC 7519 §7.2, OpenID Connect Core §16.14). Without encryption in the
   * configuration, returns a token that is not encrypted.
   * @param plain `accept`: also a token that is not encrypted although it should be
   * @returns the JWT in it, of which the signature has still to be verified
   */
  async open(kind: EncryptedKind, token: string, refuse: Refuse, plain?: 'accept'): Promise<string> {
    if (token.length > longestToken) refuse(`it is longer than ${longestToken} characters`)
    const { alg, enc, setting } = this.#encryption[kind]
    const isEncrypted = token.split('.', 6).length === 5
    if (alg === undefined && isEncrypted)
      refuse(`it is encrypted: register this client without encryption, or set provider.${setting}`)
    if (alg === undefined || (!isEncrypted && plain === 'accept')) return token
    if (!isEncrypted) refuse(`it is not encrypted, although provider.${setting} is set`)
    const kid = checkHeader(token, { alg, enc, setting }, refuse)
    const key = await this.#keys.find(alg, kid)
    if (key === undefined)
      return refuse(
        kid === undefined
          ? 'it does not name its key (kid), so provider.decryption_key is needed'
          : `the key ${printable(kid.slice(0, 100))} is unknown: let the provider read the JWKS of this client again, or set provider.decryption_key.kid`,
      )
    const options = { keyManagementAlgorithms: [alg], contentEncryptionAlgorithms: [enc] }
    const { plaintext } = await compactDecrypt(token, key, options).catch((cause: unknown) =>
      refuse(`it cannot be decrypted: ${reason(cause)}`, cause),
    )
    const content = new TextDecoder().decode(plaintext)
    // A nested JWE has five parts. Unsigned JSON has none.
    if (content.split('.', 4).length !== 3) refuse('its content is not a signed JWT')
    return content
  }
}

/** Checks the header (RFC 7516 §4.1) before anything is decrypted, and returns `kid`. */
function checkHeader(
  token: string,
  expected: { readonly alg: string; readonly enc: string; readonly setting: string },
  refuse: Refuse,
): string | undefined {
  const { alg, enc, cty, kid, ...others } = headerOf(token, refuse)
  const registered = `set provider.${expected.setting} and the setting of enc to those that this client is registered with`
  if (alg !== expected.alg) refuse(`it is encrypted with ${text(alg)} and not with ${expected.alg}: ${registered}`)
  if (enc !== expected.enc) refuse(`it is encrypted with ${text(enc)} and not with ${expected.enc}: ${registered}`)
  // A few bytes could become many (RFC 8725 §3.6).
  if ('zip' in others) refuse('it is compressed (zip)')
  if ('crit' in others) refuse('it has extensions that must be understood (crit)')
  // RFC 7519 §5.2 requires it. Without it, the content shows what it is.
  if (cty !== undefined && !/^(?:application\/)?jwt$/i.test(String(cty))) refuse(`its content is ${text(cty)}, not JWT`)
  if (kid !== undefined && typeof kid !== 'string') refuse('its kid is not a string')
  return kid
}

function headerOf(token: string, refuse: Refuse): Readonly<Record<string, unknown>> {
  try {
    return decodeProtectedHeader(token)
  } catch (cause) {
    return refuse('its header is not JSON', cause)
  }
}

function text(value: unknown): string {
  return printable(String(value).slice(0, 100))
}
