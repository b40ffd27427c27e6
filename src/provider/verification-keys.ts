import { createLocalJWKSet, errors, type CryptoKey, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose'

/** Finds the key for a token by its header. */
export type VerificationKeys = JWTVerifyGetKey<CryptoKey>

/** How many keys are tried for one token at most. */
const maxKeys = 16

/**
 * The keys of a set, by `kid`. If no key has the `kid`, the keys without one are candidates,
 * because `kid` is optional (RFC 7517 §4.5).
 */
export function verificationKeys(set: JSONWebKeySet): VerificationKeys {
  const all = createLocalJWKSet(set)
  const unnamed = set.keys.filter(({ kid }) => kid === undefined)
  if (unnamed.length === 0) return all
  const withoutKid = createLocalJWKSet({ keys: unnamed })
  return async (header, token) => {
    try {
      return await all(header, token)
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey) || typeof header.kid !== 'string') throw error
      const { kid: _, ...others } = header
      return withoutKid(others, token)
    }
  }
}

/**
 * Runs `verify` with the key that fits. If several keys fit, runs it with one after the other,
 * because keys may share a `kid`, and a token need not have one.
 * @throws the errors of `verify`; `JWSSignatureVerificationFailed` when no candidate has signed the
 * token
 */
export async function verifyWithAny<T>(
  keys: VerificationKeys,
  verify: (key: VerificationKeys) => Promise<T>,
): Promise<T> {
  try {
    return await verify(keys)
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error
    let left = maxKeys
    for await (const key of error) {
      if (left-- === 0) break
      try {
        return await verify(async () => key)
      } catch (failure) {
        if (!(failure instanceof errors.JWSSignatureVerificationFailed)) throw failure
      }
    }
    throw new errors.JWSSignatureVerificationFailed()
  }
}
