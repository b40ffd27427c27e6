import { createCipheriv, createDecipheriv, createHash, createSecretKey, type KeyObject } from 'node:crypto'
import { randomBytes } from './random.ts'

const ivBytes = 12
const authTagBytes = 16
const keyIdBytes = 4

interface SealKey {
  readonly id: Buffer
  /** A KeyObject, because each use of plain bytes takes Node.js three times as long. */
  readonly secret: KeyObject
}

/** Kinds of sealed data with a version, as the log names them. */
export type SealedKind =
  | 'session'
  | 'logout_job'
  | 'kept_form'
  | 'application_secret'
  | 'signing_keys'
  | 'event_stream'
  | 'sign_in'
  | 'cookie'
  | 'device_challenge'

/** Called once for each kind of data that a newer version of the gateway has sealed. */
type OnNewer = (kind: SealedKind, format: number) => void

/**
 * Encrypts with AES-256-GCM, bound to a context: data opens only in the context that it was sealed
 * for. The first key seals and all keys open, so that keys can be rotated. Layout: key id (4
 * bytes), IV (12), tag (16), ciphertext.
 */
export class Keyring {
  readonly #keys: readonly [SealKey, ...SealKey[]]
  readonly #onNewer: OnNewer | undefined
  readonly #reported = new Set<SealedKind>()

  /** @throws {RangeError} when there is no key, or one is not 32 bytes long */
  constructor(secrets: readonly Buffer[], onNewer?: OnNewer) {
    for (const secret of secrets)
      if (secret.length !== 32) throw new RangeError(`a sealing key has 32 bytes, not ${secret.length}`)
    const keys = secrets.map((secret) => ({
      id: createHash('sha256').update('gatehouse key id').update(secret).digest().subarray(0, keyIdBytes),
      secret: createSecretKey(secret),
    }))
    const [first, ...others] = keys
    if (first === undefined) throw new RangeError('at least one sealing key is needed')
    this.#keys = [first, ...others]
    this.#onNewer = onNewer
  }

  seal(plain: Uint8Array | string, context: string): Buffer {
    const [key] = this.#keys
    const iv = randomBytes(ivBytes)
    const cipher = createCipheriv('aes-256-gcm', key.secret, iv).setAAD(Buffer.from(context))
    const ciphertext = [typeof plain === 'string' ? cipher.update(plain, 'utf8') : cipher.update(plain), cipher.final()]
    return Buffer.concat([key.id, iv, cipher.getAuthTag(), ...ciphertext])
  }

  /** Whether data is sealed with the key that seals now, and not with an earlier one. */
  isCurrent(sealed: Uint8Array): boolean {
    const [key] = this.#keys
    return key.id.equals(sealed.subarray(0, keyIdBytes))
  }

  /** Decrypts. `undefined`: the key is unknown, the context differs, or the data was changed. */
  open(sealed: Uint8Array, context: string): Buffer | undefined {
    const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength)
    const key = this.#keys.find(({ id }) => id.equals(bytes.subarray(0, keyIdBytes)))
    const body = keyIdBytes + ivBytes + authTagBytes
    if (key === undefined || bytes.length < body) return undefined
    const iv = bytes.subarray(keyIdBytes, keyIdBytes + ivBytes)
    const decipher = createDecipheriv('aes-256-gcm', key.secret, iv, { authTagLength: authTagBytes })
    decipher.setAAD(Buffer.from(context)).setAuthTag(bytes.subarray(keyIdBytes + ivBytes, body))
    try {
      const plain = decipher.update(bytes.subarray(body))
      // GCM has no blocks: nothing is left, and the authentication tag is verified here.
      decipher.final()
      return plain
    } catch {
      return undefined
    }
  }

  /**
   * Decrypts JSON. Its member `v` is the version of its format; without it, the version is 1.
   * @returns `newer` when this version of the gateway does not know the format, which is reported;
   * `undefined` as {@link open}
   */
  openJson<T extends object>(kind: SealedKind, sealed: Uint8Array, context: string): T | 'newer' | undefined {
    const plain = this.open(sealed, context)
    if (plain === undefined) return undefined
    const value = JSON.parse(plain.toString('utf8')) as T & { readonly v?: number }
    const { v = 1 } = value
    return v === 1 ? value : this.reportNewer(kind, v)
  }

  /** Reports once that data has a format that this version of the gateway does not know. */
  reportNewer(kind: SealedKind, format: number): 'newer' {
    if (!this.#reported.has(kind)) this.#onNewer?.(kind, format)
    this.#reported.add(kind)
    return 'newer'
  }
}
