// Hashes of secrets with scrypt (RFC 7914), written as PHC strings.
import { randomBytes, scrypt, type ScryptOptions, timingSafeEqual } from 'node:crypto'

/** The hash of a secret, and how it was computed. */
export interface ScryptHash {
  /** The cost is `2 ** ln`. */
  readonly ln: number
  readonly r: number
  readonly p: number
  readonly salt: Buffer
  readonly hash: Buffer
}

type Costs = Pick<ScryptHash, 'ln' | 'r' | 'p'>

/** 32 MiB and about 0.2 s: OWASP Password Storage Cheat Sheet. */
export const usualCosts: Costs = { ln: 15, r: 8, p: 3 }
/** One computation takes at most this much memory, in bytes. */
const maxMemoryBytes = 128 * 1024 * 1024
const maxWork = 2 ** 17 * 8 * 4
const phc = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]{1,128})\$([A-Za-z0-9+/]{1,128})$/

/**
 * Reads `$scrypt$ln=15,r=8,p=3$SALT$HASH`, with base64 without padding.
 * @throws {SyntaxError} names what is wrong, and never the hash
 */
export function parseScryptHash(text: string): ScryptHash {
  const found = phc.exec(text)
  if (found === null) throw new SyntaxError('needs a hash such as $scrypt$ln=15,r=8,p=3$SALT$HASH')
  const [, ln, r, p] = found.map(Number) as [number, number, number, number]
  const [salt, hash] = [found[4], found[5]].map((part) => Buffer.from(part ?? '', 'base64')) as [Buffer, Buffer]
  if (ln < 14 || r < 8 || p < 1) throw new SyntaxError('has too low costs: at least ln=14, r=8, p=1')
  if (128 * 2 ** ln * r > maxMemoryBytes || 2 ** ln * r * p > maxWork)
    throw new SyntaxError('has too high costs: use ln=15, r=8, p=3')
  if (salt.length < 16 || hash.length < 16 || hash.length > 64)
    throw new SyntaxError('needs a salt of at least 16 bytes, and a hash of 16 to 64 bytes')
  return { ln, r, p, salt, hash }
}

/** Hashes a secret, with a new salt. Returns a PHC string. */
export async function hashSecret(secret: string, costs: Costs = usualCosts): Promise<string> {
  const { ln, r, p } = costs
  const salt = randomBytes(16)
  const hash = await compute(secret, { ...costs, salt, hash: Buffer.alloc(32) })
  return `$scrypt$ln=${ln},r=${r},p=${p}$${unpadded(salt)}$${unpadded(hash)}`
}

/** Whether a secret has this hash. Takes as long when it has not. */
export async function hasHash(secret: string, expected: ScryptHash): Promise<boolean> {
  return timingSafeEqual(await compute(secret, expected), expected.hash)
}

function compute(secret: string, { ln, r, p, salt, hash }: ScryptHash): Promise<Buffer> {
  const N = 2 ** ln
  // Node.js needs a little more than 128 * N * r.
  const options: ScryptOptions = { N, r, p, maxmem: 2 * 128 * N * r }
  return new Promise((resolve, reject) => {
    scrypt(secret, salt, hash.length, options, (error, key) => (error === null ? resolve(key) : reject(error)))
  })
}

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '')
}
