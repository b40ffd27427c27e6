import { closeSync, openSync, readFileSync, readSync, statSync } from 'node:fs'

/** What a file holds, or in plain words why it cannot be read. */
export type FileContent = { readonly bytes: Buffer } | { readonly why: string }

/** Reads a file that a person named, so everything can be wrong with it. */
export function readBounded(file: string, limit: number): FileContent {
  try {
    const found = statSync(file)
    if (found.isDirectory()) return { why: 'is a directory, not a file' }
    // A pipe may never end, and opening one may wait for ever.
    if (!found.isFile()) return { why: 'is not a regular file' }
    if (found.size > limit) return tooLarge(limit)
    return { bytes: readFileSync(file) }
  } catch (error) {
    return { why: inPlainWords(error) }
  }
}

/**
 * Reads what a person hands over, be it a file, a pipe or standard input (0): what never ends is
 * read as far as the limit.
 */
export function readHandedOver(file: string | 0, limit: number): FileContent {
  try {
    const fd = file === 0 ? file : openSync(file, 'r')
    try {
      const bytes = Buffer.alloc(limit + 1)
      let length = 0
      for (let read = 1; read > 0 && length <= limit; length += read) read = readSync(fd, bytes, { offset: length })
      return length > limit ? tooLarge(limit) : { bytes: bytes.subarray(0, length) }
    } finally {
      if (file !== 0) closeSync(fd)
    }
  } catch (error) {
    return { why: inPlainWords(error) }
  }
}

/**
 * Says when a file or folder is another than before: it was written, replaced, removed, or a link
 * leads elsewhere.
 */
export function stampOf(file: string): string {
  try {
    const { dev, ino, size, mtimeNs } = statSync(file, { bigint: true })
    return `${dev}:${ino}:${size}:${mtimeNs}`
  } catch {
    return 'not there'
  }
}

function tooLarge(limit: number): FileContent {
  return { why: `is larger than ${limit >= 1024 * 1024 ? `${limit / 1024 / 1024} MiB` : `${limit / 1024} KiB`}` }
}

/** Why a file or folder cannot be read: what stands behind its name. */
export function inPlainWords(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown reason'
  if (code === 'ENOENT') return 'does not exist'
  if (code === 'EACCES' || code === 'EPERM') return 'may not be read by this user'
  if (code === 'EISDIR') return 'is a directory, not a file'
  if (code === 'ENOTDIR') return 'does not exist: a part of its path is a file, not a directory'
  if (code === 'ENAMETOOLONG') return 'does not exist: its name is too long'
  if (code === 'ELOOP') return 'cannot be read: its links go round in circles'
  return `cannot be read (${code})`
}
