import { createHmac, hash, randomBytes as newBytes, randomFillSync, createHash, timingSafeEqual } from 'node:crypto'

/** Random bytes are generated in advance, because many small calls of the generator are slower. */
const pool = Buffer.alloc(6 * 1024)
let poolAt = pool.length

/** Random bytes as base64url. 16 bytes are the 128 bits that RFC 6749 §10.10 requires. */
export function randomToken(bytes: number): string {
  const at = draw(bytes)
  return pool.toString('base64url', at, at + bytes)
}

/** SHA-256, as base64url. Parts are hashed as a JSON array, so that no two lists collide. */
export function sha256(...parts: readonly [string, ...string[]]): string {
  const input = parts.length === 1 ? parts[0] : JSON.stringify(parts)
  return hash('sha256', input, 'base64url')
}

/** A hash (hexadecimal) with a random key of this process. It says nothing about the texts. */
export function createKeyedHash(): (...parts: readonly string[]) => string {
  const key = newBytes(32)
  return (...parts) => createHmac('sha256', key).update(JSON.stringify(parts)).digest('hex')
}

/** The left half of a SHA-2 digest, as base64url: `at_hash` of OpenID Connect Core §3.1.3.6. */
export function leftHalfOfHash(bits: 256 | 384 | 512, text: string): string {
  return hash(`sha${bits}`, text, 'buffer')
    .subarray(0, bits / 16)
    .toString('base64url')
}

/**
 * 95 random bits as 16 characters of base64url. The first one is from A to f, so that an ID on a
 * command line is never an option.
 */
export function randomId(): string {
  const at = draw(12)
  pool[at] = (pool[at] ?? 0) & 0x7f
  return pool.toString('base64url', at, at + 12)
}

/** Random bytes as hexadecimal digits. */
export function randomHex(bytes: number): string {
  const at = draw(bytes)
  return pool.toString('hex', at, at + bytes)
}

/** Random bytes. They are valid until the next call. */
export function randomBytes(bytes: number): Buffer {
  const at = draw(bytes)
  return pool.subarray(at, at + bytes)
}

/** Takes bytes from the pool, and returns their offset. */
function draw(bytes: number): number {
  if (poolAt + bytes > pool.length) {
    randomFillSync(pool)
    poolAt = 0
  }
  poolAt += bytes
  return poolAt - bytes
}

/** Compares two texts in constant time. */
export function isSameSecret(one: string, other: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(one), digest(other))
}
