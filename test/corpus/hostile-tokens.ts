import { createHmac, randomBytes, sign, constants } from 'node:crypto'
import { ecKey, part, rsaKey, type Json, type SigningKey } from '../support/signing-provider.ts'

/** The faults of a token. Default: none. */
export interface TokenBend {
  readonly set?: Json
  readonly del?: readonly string[]
  /** The name of the key that signs the token. */
  readonly key?: string
  readonly sign?: string
  readonly noneCase?: string
  readonly header?: { readonly set?: Json; readonly del?: readonly string[] }
  readonly typ?: string
  /** The whole token, or its payload, as text. */
  readonly raw?: string
  readonly rawPayload?: string
  /** A second `sub`, before the real one. */
  readonly dupSub?: string
}

/** `evil` has the kid of `a`, and belongs to an attacker. */
export const keys: Readonly<Record<string, SigningKey>> = {
  a: rsaKey('key-a'),
  b: rsaKey('key-b'),
  c: rsaKey('key-c'),
  evil: rsaKey('key-a'),
  weak: rsaKey('key-weak', 1024),
  ec: ecKey('key-ec'),
}

export const random = (bytes = 16) => randomBytes(bytes).toString('base64url')
export const seconds = () => Math.floor(Date.now() / 1000)

/** Sets and deletes members. `defineProperty`, so that a member called `__proto__` is one. */
export function bent(object: Json, bend: { readonly set?: Json; readonly del?: readonly string[] } = {}): Json {
  for (const [name, value] of Object.entries(bend.set ?? {}))
    Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true })
  for (const name of bend.del ?? []) delete object[name]
  return object
}

/** A JWS with any defect. `bend` holds values, not placeholders. */
export function signedToken(
  payload: Json,
  bend: TokenBend,
  active: string,
  client_secret: string,
  typ = 'JWT',
): string {
  if (bend.raw !== undefined) return bend.raw
  const key = keyNamed(bend.key ?? active)
  const how = bend.sign ?? 'right'
  const header = bent({ alg: algorithmOf(how, bend, key), typ: bend.typ ?? typ, kid: key.jwk['kid'] }, bend.header)
  if (how === 'embedded-jwk') header['jwk'] = keyNamed('evil').jwk
  const json = bend.rawPayload ?? JSON.stringify(payload)
  const text = bend.dupSub === undefined ? json : json.replace('{', `{"sub":${JSON.stringify(bend.dupSub)},`)
  const input = `${part(header)}.${part(text)}`
  if (how === 'zerosig-es')
    return `${part({ ...header, alg: 'ES256', kid: 'key-ec' })}.${part(text)}.${Buffer.alloc(64).toString('base64url')}`
  const signature = signatureOf(input, how, key, client_secret)
  if (how === 'tamper') return `${part(header)}.${part({ ...payload, sub: 'attacker' })}.${signature}`
  return `${input}.${signature}${how === 'fiveparts' ? '.AAAA.AAAA' : ''}`
}

function algorithmOf(how: string, { noneCase = 'none' }: TokenBend, key: SigningKey): string {
  if (how.startsWith('hs256')) return 'HS256'
  if (how.startsWith('none')) return noneCase
  return { ps256: 'PS256', rs512: 'RS512' }[how] ?? key.alg
}

function signatureOf(input: string, how: string, key: SigningKey, client_secret: string): string {
  const bytes = Buffer.from(input)
  const evil = keyNamed('evil').privateKey
  switch (how) {
    case 'none':
    case 'strip':
      return ''
    case 'hs256-secret':
      return createHmac('sha256', client_secret).update(input).digest('base64url')
    case 'hs256-pub':
      return createHmac('sha256', key.publicKey.export({ type: 'spki', format: 'pem' }))
        .update(input)
        .digest('base64url')
    case 'otherkey':
    case 'embedded-jwk':
      return sign('sha256', bytes, evil).toString('base64url')
    case 'ps256': {
      const padding = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 }
      return sign('sha256', bytes, { key: key.privateKey, ...padding }).toString('base64url')
    }
    case 'rs512':
      return sign('sha512', bytes, key.privateKey).toString('base64url')
    default: {
      const signature = sign('sha256', bytes, { key: key.privateKey, dsaEncoding: 'ieee-p1363' })
      if (how === 'flip') signature[7] = (signature[7] ?? 0) ^ 0xff
      return signature.toString('base64url')
    }
  }
}

function keyNamed(name: string): SigningKey {
  const key = keys[name]
  if (key === undefined) throw new Error(`no key is called ${name}`)
  return key
}
