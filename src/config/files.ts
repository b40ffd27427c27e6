import { readFileSync, statSync } from 'node:fs'

/** What a file holds, or in plain words why it cannot be read. */
export type FileContent = { readonly bytes: Buffer } | { readonly why: string }

/** Reads a file that a person named, so everything can be wrong with it. */
export function readBounded(file: string, limit: number): FileContent {
  try {
    const found = statSync(file)
    if (found.isDirectory()) return { why: 'is a directory, not a file' }
    // A pipe may never end, and opening one may wait for ever.
    if (!found.isFile()) return { why: 'is not a regular file' }
    if (found.size > limit) return { why: `is larger than ${sizeText(limit)}` }
    return { bytes: readFileSync(file) }
  } catch (error) {
    return { why: inPlainWords(error) }
  }
}

function sizeText(bytes: number): string {
  return bytes >= 1024 * 1024 ? `${bytes / 1024 / 1024} MiB` : `${bytes / 1024} KiB`
}

export function inPlainWords(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown reason'
  if (code === 'ENOENT') return 'does not exist'
  if (code === 'EACCES' || code === 'EPERM') return 'may not be read by this user'
  if (code === 'ENOTDIR') return 'does not exist: a part of its path is a file, not a directory'
  if (code === 'ENAMETOOLONG') return 'does not exist: its name is too long'
  if (code === 'ELOOP') return 'cannot be read: its links go round in circles'
  return `cannot be read (${code})`
}
