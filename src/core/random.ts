import { hash, randomFillSync } from 'node:crypto'

/** Chance that is had in advance: asked for a few bytes at a time it costs far more. */
const pool = Buffer.alloc(6 * 1024)
let poolAt = pool.length

/**
 * `bytes` of chance, as base64url. 16 bytes are the 128 bits that RFC 6749 §10.10 asks of a value
 * nobody may guess.
 */
export function randomToken(bytes: number): string {
  const at = draw(bytes)
  return pool.toString('base64url', at, at + bytes)
}

/**
 * SHA-256, as base64url. Several parts are hashed as a JSON array, so that no two lists of parts
 * can collide.
 */
export function sha256(...parts: readonly [string, ...string[]]): string {
  const input = parts.length === 1 ? parts[0] : JSON.stringify(parts)
  return hash('sha256', input, 'base64url')
}

/**
 * The left half of a digest, as base64url: `at_hash` of OpenID Connect Core §3.1.3.6. `bits`: of
 * the SHA-2 function.
 */
export function leftHalfOfHash(bits: 256 | 384 | 512, text: string): string {
  return hash(`sha${bits}`, text, 'buffer')
    .subarray(0, bits / 16)
    .toString('base64url')
}

/**
 * 95 bits of chance, as 16 letters of base64url, the first of them from A to f: who pastes it
 * behind a command never gives an option.
 */
export function randomId(): string {
  const at = draw(12)
  pool[at] = (pool[at] ?? 0) & 0x7f
  return pool.toString('base64url', at, at + 12)
}

/** `bytes` of chance, as hexadecimal digits. */
export function randomHex(bytes: number): string {
  const at = draw(bytes)
  return pool.toString('hex', at, at + bytes)
}

/** `bytes` of chance; they are good until the next are asked for. */
export function randomBytes(bytes: number): Buffer {
  const at = draw(bytes)
  return pool.subarray(at, at + bytes)
}

/** Where in the pool these `bytes` of chance begin, which nobody else is given. */
function draw(bytes: number): number {
  if (poolAt + bytes > pool.length) {
    randomFillSync(pool)
    poolAt = 0
  }
  poolAt += bytes
  return poolAt - bytes
}
