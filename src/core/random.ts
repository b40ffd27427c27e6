import { hash, randomBytes, randomFillSync } from 'node:crypto'

/** `bytes` of chance, as base64url. 16 bytes are the 128 bits that RFC 6749 §10.10 asks of a value nobody may guess. */
export function randomToken(bytes: number): string {
  return randomBytes(bytes).toString('base64url')
}

/** SHA-256, as base64url. Several parts are hashed as a JSON array, so that no two lists of parts can collide. */
export function sha256(...parts: readonly [string, ...string[]]): string {
  const input = parts.length === 1 ? parts[0] : JSON.stringify(parts)
  return hash('sha256', input, 'base64url')
}

const pool = Buffer.alloc(6 * 1024)
let poolAt = pool.length

/**
 * 95 bits of chance, as 16 letters of base64url, the first of them from A to f: who pastes it behind a command never gives an
 * option. As good as `randomToken`, and cheap enough for every request: chance is had in advance.
 */
export function randomId(): string {
  const at = reserve(12)
  pool[at] = (pool[at] ?? 0) & 0x7f
  return pool.toString('base64url', at, poolAt)
}

/** `bytes` of chance, as hexadecimal digits; cheap, too. */
export function randomHex(bytes: number): string {
  const at = reserve(bytes)
  return pool.toString('hex', at, poolAt)
}

/** Where in the pool the next `bytes` of chance begin, up to `poolAt`. */
function reserve(bytes: number): number {
  if (poolAt + bytes > pool.length) {
    randomFillSync(pool)
    poolAt = 0
  }
  poolAt += bytes
  return poolAt - bytes
}
