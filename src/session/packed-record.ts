import { deflateRawSync, inflateRawSync } from 'node:zlib'
import type { SessionRecord } from './record.ts'

/** The first byte of a packed record. A record that is not packed is JSON and begins with "{". */
const packed = 2

const tokenNames = ['access_token', 'refresh_token', 'id_token'] as const

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
const options = { dictionary, level: 6, windowBits: 13, memLevel: 6 }

/**
 * The lengths of the header, the payload and the signature of a JWT, in bytes. They replace the
 * token in the record.
 */
type Lengths = readonly [number, number, number]

/**
 * Compresses a record. The base64url encoding of JWTs does not compress well, so their parts are
 * decoded first. Signatures are stored as bytes, without compression.
 */
export function packRecord(record: SessionRecord): { readonly bytes: Buffer; readonly unpackedBytes: number } {
  const tokens: Record<string, unknown> = { ...record.tokens }
  const [texts, signatures]: [Buffer[], Buffer[]] = [[], []]
  for (const name of tokenNames) {
    const jwt = decodeJwt(record.tokens[name])
    if (jwt === undefined) continue
    const [header, payload, signature] = jwt
    texts.push(header, payload)
    signatures.push(signature)
    tokens[name] = jwt.map(({ length }) => length)
  }
  // The output of JSON.stringify has no line breaks.
  const text = Buffer.concat([Buffer.from(`${JSON.stringify({ ...record, tokens })}\n`), ...texts])
  const signed = Buffer.concat(signatures)
  const lead = Buffer.alloc(3)
  lead.writeUInt8(packed, 0)
  lead.writeUInt16BE(signed.length, 1)
  return {
    bytes: Buffer.concat([lead, signed, deflateRawSync(text, options)]),
    unpackedBytes: text.length + signed.length,
  }
}

/** Reads a packed record or JSON; `undefined` when the format is unknown. */
export function unpackRecord(
  bytes: Buffer,
): { readonly record: SessionRecord; readonly unpackedBytes: number } | undefined {
  if (bytes[0] !== packed) return readJson(bytes)
  const end = 3 + bytes.readUInt16BE(1)
  const text = inflateRawSync(bytes.subarray(end), options)
  const line = text.indexOf('\n')
  const record = JSON.parse(text.toString('utf8', 0, line)) as SessionRecord
  const tokens: Record<string, unknown> = { ...record.tokens }
  let [textAt, signatureAt] = [line + 1, 3]
  for (const name of tokenNames) {
    if (!Array.isArray(tokens[name])) continue
    const [header, payload, signature] = tokens[name] as unknown as Lengths
    const parts = [
      text.subarray(textAt, textAt + header),
      text.subarray(textAt + header, textAt + header + payload),
      bytes.subarray(signatureAt, signatureAt + signature),
    ]
    textAt += header + payload
    signatureAt += signature
    tokens[name] = parts.map((part) => part.toString('base64url')).join('.')
  }
  return {
    record: { ...record, tokens: tokens as unknown as SessionRecord['tokens'] },
    unpackedBytes: text.length + end,
  }
}

/** Reads the format of earlier versions. */
function readJson(bytes: Buffer) {
  const { v, ...record } = JSON.parse(bytes.toString('utf8')) as SessionRecord & { readonly v: number }
  return v === 1 ? { record, unpackedBytes: bytes.length } : undefined
}

/** The parts of a JWT; `undefined` when encoding them again would not give the same token. */
function decodeJwt(token: string | undefined): readonly [Buffer, Buffer, Buffer] | undefined {
  const parts = token?.split('.') ?? []
  const decoded = parts.map((part) => Buffer.from(part, 'base64url'))
  const [header, payload, signature] = decoded
  if (header === undefined || payload === undefined || signature === undefined || decoded.length !== 3) return undefined
  if (signature.length > 16_384 || decoded.some((part, index) => part.toString('base64url') !== parts[index]))
    return undefined
  return [header, payload, signature]
}
