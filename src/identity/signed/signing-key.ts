import { generateKeyPairSync, sign } from 'node:crypto'
import type { IdentityAlgorithm, UpstreamConfig } from '../../config/model/upstream.ts'
import type { EndpointRequest } from '../../http/endpoint-request.ts'
import { json, type Response } from '../../http/response.ts'
import { type RotatingKey, rotatingKey } from '../../keys/rotating-key.ts'
import { type KeyPurpose, publicKeysMaxAge, type RotatingKeys } from '../../keys/rotating-keys.ts'

/**
 * The `typ` of a signed identity: verifiers of other tokens that check it reject it (RFC 8725
 * §3.11).
 */
export const identityType = 'gatehouse-identity+jwt'

/**
 * How long a key stays published after its successor signs, in ms: longer than the longest
 * `lifetime` (1h), because clocks differ. All tokens of a retired key have expired.
 */
export const retainedMs = 2 * 3_600_000

/** The keys that sign identities. Each is published before it signs. */
export const signingKeyPurpose: KeyPurpose<IdentityAlgorithm> = {
  name: 'signing keys',
  use: 'sig',
  retainedMs,
  create: createSigningKey,
  events: {
    created: 'signing_key.created',
    rotated: 'signing_key.rotated',
    notRead: 'signing_keys.not_read',
    unreadable: 'signing_keys.unreadable',
  },
}

/** Creates a key pair. `signsFrom` is in ms since the epoch. */
export function createSigningKey(alg: IdentityAlgorithm, signsFrom: number): RotatingKey {
  const { privateKey } =
    alg === 'ES256' ? generateKeyPairSync('ec', { namedCurve: 'P-256' }) : generateKeyPairSync('ed25519')
  return rotatingKey(alg, signsFrom, privateKey)
}

/** The algorithms of the signed identities of these upstreams. */
export function algorithmsOf(
  upstreams: readonly Pick<UpstreamConfig, 'signedIdentity'>[],
): ReadonlySet<IdentityAlgorithm> {
  return new Set(upstreams.flatMap(({ signedIdentity }) => signedIdentity?.algorithm ?? []))
}

/**
 * Signs a payload as a JWT. This takes some 50 µs. With Web Crypto, the work would move to another
 * thread, but each request would have to wait for a promise.
 */
export function signJwt(
  { alg, kid, privateKey }: Pick<RotatingKey, 'alg' | 'kid' | 'privateKey'>,
  payload: object,
  header: object = { alg, typ: identityType, kid },
): string {
  const input = `${encoded(header)}.${encoded(payload)}`
  // RFC 7518 §3.4: R and S, one after the other. Ed25519 has no separate hash.
  const signature = sign(alg === 'ES256' ? 'sha256' : null, Buffer.from(input), {
    key: privateKey,
    dsaEncoding: 'ieee-p1363',
  })
  return `${input}.${signature.toString('base64url')}`
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

export interface JwksParts {
  readonly signingKeys: Pick<RotatingKeys<IdentityAlgorithm>, 'published'>
}

/** `GET jwks.json`: the public keys (RFC 7517 §5). Throws `ERR_STORE_UNAVAILABLE`. */
export async function jwks(_request: EndpointRequest, { signingKeys }: JwksParts): Promise<Response> {
  return json(200, { keys: await signingKeys.published() }, publicKeysMaxAge)
}
