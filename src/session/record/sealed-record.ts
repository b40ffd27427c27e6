import { deflateRawSync, inflateRawSync } from 'node:zlib'
import type { SessionKey } from '../../core/names.ts'
import { Keyring } from '../../core/seal.ts'
import type { DpopKey, TokenSet } from '../../core/token-set.ts'
import { version } from '../../core/version.ts'
import type { Log } from '../../observe/log.ts'
import type { SessionRecord, StoredSession } from './record.ts'

/**
 * The first byte of a packed record: whether its JSON is compressed together with the tokens. A
 * record that is not packed is JSON and begins with "{".
 */
const formats = { compressed: 2, plainJson: 3 } as const

/** Longer JSON is compressed. For shorter JSON, inflating would take longer than all else. */
const maxPlainJson = 2048

/** Shorter texts of tokens, in bytes, stay as they are: zlib costs more than it saves. */
const minCompressedBytes = 512

const tokenNames = ['access_token', 'refresh_token', 'id_token'] as const
type TokenName = (typeof tokenNames)[number]

/** Text that most records contain. It is part of the format and must never change. */
const dictionary = Buffer.from(
  '"zoneinfo":"Europe/Berlin","locale":"phone_number_verified":"address":{"formatted":"groups":["roles":["realm_access":{"resource_access":{' +
    '"account":"allowed-origins":["acr":"amr":["pwd"],"nonce":"at_hash":"auth_time":1,"session_state":"jti":"typ":"Bearer","Refresh","ID","azp":' +
    '"aud":"exp":1,"nbf":1,"iat":1,"scope":"openid profile email offline_access","client_id":"sid":"' +
    '{"alg":"RS256","typ":"JWT","kid":"{"alg":"RS256","typ":"at+jwt","kid":"' +
    '"email_verified":true,"preferred_username":"given_name":"family_name":"name":"email":"picture":"https://","updated_at":1' +
    '"claims":{"userinfo_read_at":1,"tokens":{"access_token":"obtained_at":1,"access_token_expires_at":1,"refresh_token":"id_token":"' +
    '"origin":"https://","created_at":1,"absolute_expires_at":1,{"iss":"https://","sub":"',
)
// With the larger default windows of zlib, the set-up takes longer than the compression.
// By default, zlib allocates its output in chunks of 16 KiB. Most records need less.
const options = { dictionary, level: 6, windowBits: 13, memLevel: 6, chunkSize: 2048 }

/** Takes the place of a token: the lengths of the parts of a JWT, or of another token, in bytes. */
type Lengths = readonly [header: number, payload: number, signature: number] | readonly [whole: number]

/**
 * Compresses a record. The parts of JWTs are decoded first, because base64url does not compress
 * well. Signatures are stored as bytes.
 */
export function packRecord(record: SessionRecord): { readonly bytes: Buffer; readonly unpackedBytes: number } {
  const isPacked = record.tokens instanceof PackedTokens
  const tokens: Partial<Record<TokenName, unknown>> = { ...(isPacked ? record.tokens.toJSON() : record.tokens) }
  const [texts, signatures]: [Buffer[], Buffer[]] = [[], []]
  for (const name of tokenNames) {
    const parts = partsOf(record.tokens[name])
    if (parts === undefined) continue
    const [first = empty, second = empty, signature = empty] = parts
    texts.push(first, second)
    signatures.push(signature)
    tokens[name] = parts.map(({ length }) => length)
  }
  const json = Buffer.from(JSON.stringify({ ...record, tokens }))
  const signed = Buffer.concat(signatures)
  const bytes =
    json.length <= maxPlainJson
      ? [lead(formats.plainJson, signed.length, json.length), ...[signed, json, ...deflated(texts, json)]]
      : // The output of JSON.stringify has no line breaks.
        [
          lead(formats.compressed, signed.length),
          ...[signed, deflateRawSync(Buffer.concat([json, Buffer.from('\n'), ...texts]), options)],
        ]
  // These tokens are not packed.
  const tokenBytes = lengthOf(tokenNames.map((name) => record.tokens[name] ?? ''))
  return { bytes: Buffer.concat(bytes), unpackedBytes: memoryOf(json.length, tokenBytes) }
}

/** The texts of the tokens after this JSON, as raw DEFLATE data (RFC 1951). */
function deflated(texts: readonly Buffer[], json: Buffer): readonly Buffer[] {
  const length = lengthOf(texts)
  if (length < minCompressedBytes) return [storedBlock(length), ...texts]
  return [deflateRawSync(Buffer.concat(texts), optionsAfter(json))]
}

const lastStoredBlock = 1
const storedBlockBytes = 5

/** The beginning of a last block that is not compressed (RFC 1951 §3.2.4). The bytes follow. */
function storedBlock(length: number): Buffer {
  const bytes = Buffer.alloc(storedBlockBytes)
  bytes.writeUInt8(lastStoredBlock, 0)
  bytes.writeUInt16LE(length, 1)
  bytes.writeUInt16LE(~length & 0xffff, 3)
  return bytes
}

function lengthOf(texts: readonly (string | Buffer)[]): number {
  return texts.reduce((sum, { length }) => sum + length, 0)
}

/**
 * The parts of a JWT, or another token as one part; `undefined` when they would not give the same
 * token.
 */
function partsOf(token: string | undefined): readonly Buffer[] | undefined {
  if (token === undefined) return undefined
  const whole = Buffer.from(token)
  return decodeJwt(token) ?? (whole.toString() === token ? [whole] : undefined)
}

/**
 * The approximate memory of a record in use, in bytes. As measured, the values of the JSON and one
 * list of header fields made of them take three to five times the length of the JSON.
 * @param tokenBytes of the texts of the tokens, or of the packed record that has them
 */
function memoryOf(jsonBytes: number, tokenBytes: number): number {
  return 4 * jsonBytes + tokenBytes
}

/** The first byte, and lengths in bytes. */
function lead(format: number, ...lengths: readonly number[]): Buffer {
  const bytes = Buffer.alloc(1 + 2 * lengths.length)
  bytes.writeUInt8(format, 0)
  for (const [index, length] of lengths.entries()) bytes.writeUInt16BE(length, 1 + 2 * index)
  return bytes
}

/** The claims in the JSON are in the tokens too, so those compress well after it. */
function optionsAfter(json: Buffer) {
  return { ...options, dictionary: Buffer.concat([dictionary, json]) }
}

export interface UnpackedRecord {
  readonly record: SessionRecord
  /** The approximate memory of the record and of `bytes`. */
  readonly unpackedBytes: number
}

/**
 * Reads a packed record or JSON. The tokens stay packed until one of them is read, because most
 * requests need none.
 * @param onTokens called when they are unpacked, with the memory that they take besides
 * @returns the number of the format when it is unknown: a newer version of the gateway wrote it
 */
export function unpackRecord(bytes: Buffer, onTokens?: (bytes: number) => void): UnpackedRecord | number {
  const [format = 0] = bytes
  if (format === '{'.charCodeAt(0)) return readJson(bytes)
  if (format !== formats.plainJson && format !== formats.compressed) return format
  const json = format === formats.plainJson ? plainJsonOf(bytes).toString() : compressedJsonOf(bytes)
  const record = JSON.parse(json) as Omit<SessionRecord, 'tokens'> & { tokens: TokenSet }
  if (tokenNames.some((name) => Array.isArray(record.tokens[name])))
    record.tokens = new PackedTokens(record.tokens, bytes, onTokens)
  return { record, unpackedBytes: memoryOf(Buffer.byteLength(json), bytes.length) }
}

function compressedJsonOf(bytes: Buffer): string {
  const text = inflated(bytes)
  return text.toString('utf8', 0, text.indexOf('\n'))
}

/** The JSON, a line break, and the texts of the tokens. */
function inflated(bytes: Buffer): Buffer {
  return inflateRawSync(bytes.subarray(3 + bytes.readUInt16BE(1)), options)
}

function plainJsonOf(bytes: Buffer): Buffer {
  const end = plainJsonEnd(bytes)
  return bytes.subarray(end - bytes.readUInt16BE(3), end)
}

function plainJsonEnd(bytes: Buffer): number {
  return 5 + bytes.readUInt16BE(1) + bytes.readUInt16BE(3)
}

/** The tokens of a record. They stay packed until one of them is read. */
class PackedTokens implements TokenSet {
  /** With {@link Lengths} in the places of the tokens. */
  readonly #tokens: TokenSet
  #read: ReadonlyMap<string, string> | undefined
  readonly #bytes: Buffer
  readonly #onRead: ((bytes: number) => void) | undefined

  /** @param bytes the packed record */
  constructor(tokens: TokenSet, bytes: Buffer, onRead?: (bytes: number) => void) {
    this.#tokens = tokens
    this.#bytes = bytes
    this.#onRead = onRead
  }

  get obtained_at(): number {
    return this.#tokens.obtained_at
  }

  get access_token_expires_at(): number | undefined {
    return this.#tokens.access_token_expires_at
  }

  get dpop_key(): DpopKey | undefined {
    return this.#tokens.dpop_key
  }

  get access_token(): string {
    return this.#textOf('access_token') as string
  }

  get refresh_token(): string | undefined {
    return this.#textOf('refresh_token')
  }

  get id_token(): string {
    return this.#textOf('id_token') as string
  }

  #textOf(name: TokenName): string | undefined {
    const token = this.#tokens[name]
    if (!Array.isArray(token)) return token
    if (this.#read === undefined) {
      this.#read = readTokens(this.#tokens, this.#bytes)
      this.#onRead?.(lengthOf([...this.#read.values()]))
    }
    return this.#read.get(name)
  }

  toJSON(): TokenSet {
    return { ...this.#tokens, ...Object.fromEntries(this.#read ?? readTokens(this.#tokens, this.#bytes)) }
  }
}

/** The packed tokens of a record, by name. */
function readTokens(tokens: TokenSet, bytes: Buffer): ReadonlyMap<string, string> {
  const text = textsOf(bytes)
  let [textAt, signatureAt] = [0, bytes[0] === formats.plainJson ? 5 : 3]
  const read = new Map<string, string>()
  for (const name of tokenNames) {
    if (!Array.isArray(tokens[name])) continue
    const [first, second = 0, signature] = tokens[name] as unknown as Lengths
    const parts = [text.subarray(textAt, textAt + first), text.subarray(textAt + first, textAt + first + second)]
    textAt += first + second
    if (signature === undefined) read.set(name, String(parts[0]))
    else {
      parts.push(bytes.subarray(signatureAt, signatureAt + signature))
      signatureAt += signature
      read.set(name, parts.map((part) => part.toString('base64url')).join('.'))
    }
  }
  return read
}

/** The headers and payloads of JWTs, and other tokens, one after the other. */
function textsOf(bytes: Buffer): Buffer {
  if (bytes[0] === formats.compressed) {
    const text = inflated(bytes)
    return text.subarray(text.indexOf('\n') + 1)
  }
  const compressed = bytes.subarray(plainJsonEnd(bytes))
  return compressed[0] === lastStoredBlock
    ? compressed.subarray(storedBlockBytes)
    : inflateRawSync(compressed, optionsAfter(plainJsonOf(bytes)))
}

/** Reads the format of earlier versions. */
function readJson(bytes: Buffer): UnpackedRecord | number {
  const { v, ...record } = JSON.parse(bytes.toString('utf8')) as SessionRecord & { readonly v: number }
  return v === 1 ? { record, unpackedBytes: memoryOf(bytes.length, 0) } : v
}

const empty = Buffer.alloc(0)

/** The parts of a JWT; `undefined` when encoding them again would not give the same token. */
function decodeJwt(token: string): readonly [Buffer, Buffer, Buffer] | undefined {
  const parts = token.split('.')
  const decoded = parts.map((part) => Buffer.from(part, 'base64url'))
  const [header, payload, signature] = decoded
  if (header === undefined || payload === undefined || signature === undefined || decoded.length !== 3) return undefined
  if (signature.length > 16_384 || decoded.some((part, index) => part.toString('base64url') !== parts[index]))
    return undefined
  return [header, payload, signature]
}

/** The keyring of a gateway. It logs once for each kind of data that a newer version has sealed. */
export function createKeyring(keys: readonly Buffer[], log: Log): Keyring {
  return new Keyring(keys, (kind, format) =>
    log.warn('store.newer_format', {
      kind,
      format,
      hint: `A newer version of Gatehouse wrote data that version ${version} cannot read. This version leaves the data as it is. Finish the upgrade, or read docs/versions.md before you go back further than one minor version.`,
    }),
  )
}

/** The session and the audience that a record is sealed for. */
type Place = Pick<StoredSession, 'key' | 'audience'>

/** Seals a record. It opens only for its own session and audience, so it fits nowhere else. */
export function sealRecord(
  keyring: Keyring,
  place: Place,
  record: SessionRecord,
): { readonly sealed: Buffer } & Pick<UnpackedRecord, 'unpackedBytes'> {
  const { bytes, unpackedBytes } = packRecord(record)
  return { sealed: keyring.seal(bytes, context(place)), unpackedBytes }
}

export interface OpenedRecord extends UnpackedRecord {
  /** The one of the audiences that the record was sealed for. */
  readonly audience: string
}

/**
 * Opens a sealed record of one of these audiences.
 * @param onTokens see `unpackRecord`
 * @returns `newer` when the record is of one of these audiences, but its format is unknown;
 * `undefined` for another audience or key, or when the bytes were changed
 */
export function openRecord(
  keyring: Keyring,
  { key, audiences }: { readonly key: SessionKey; readonly audiences: readonly string[] },
  sealed: Uint8Array,
  onTokens?: (bytes: number) => void,
): OpenedRecord | 'newer' | undefined {
  for (const audience of audiences) {
    const packed = keyring.open(sealed, context({ key, audience }))
    const opened = packed && unpackRecord(packed, onTokens)
    if (typeof opened === 'number') return keyring.reportNewer('session', opened)
    if (opened !== undefined) return { ...opened, audience }
  }
  return undefined
}

function context({ key, audience }: Place): string {
  return `gatehouse session ${key} for ${audience}`
}
