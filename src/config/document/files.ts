import { closeSync, openSync, readFileSync, readSync, type Stats, statSync } from 'node:fs'

/** The content of a file, or the reason why it cannot be read. */
export type FileContent = { readonly bytes: Buffer } | FileFault

/** Why a file or folder cannot be read. */
export interface FileFault {
  /** The end of a sentence that begins with the name. */
  readonly why: string
  /** Whether there is nothing at this path. */
  readonly isMissing?: boolean
  /** What to do, where the permissions of the file are known. */
  readonly todo?: string | undefined
}

/** Reads a regular file of at most `limit` bytes. Does not throw. */
export function readBounded(file: string, limit: number): FileContent {
  let found: Stats | undefined
  try {
    found = statSync(file)
    if (found.isDirectory()) return { why: 'is a directory, not a file' }
    // A pipe may never end, and opening it may block for ever.
    if (!found.isFile()) return { why: 'is not a regular file' }
    if (found.size > limit) return tooLarge(limit)
    return { bytes: readFileSync(file) }
  } catch (error) {
    return { why: explainFileError(error), isMissing: isMissing(error), todo: found && permissionsHint(file, found) }
  }
}

function permissionsHint(file: string, { uid, mode }: Stats): string {
  const user = process.geteuid?.()
  return `its owner is user ${uid}, its mode ${(mode & 0o777).toString(8)}, and this process is user ${user}: chown ${user} ${file}, and chmod 400`
}

/**
 * Reads a file, a pipe or standard input (0) of at most `limit` bytes. Does not throw, and stops
 * reading at the limit.
 */
export function readInput(file: string | 0, limit: number): FileContent {
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
    return { why: explainFileError(error), isMissing: isMissing(error) }
  }
}

/**
 * A text that changes when a file or folder is written, replaced or removed, or when its symbolic
 * link leads elsewhere.
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

/** Why a file or folder cannot be read, as the end of a sentence that begins with its name. */
export function explainFileError(error: unknown): string {
  const code = codeOf(error)
  if (code === 'ENOENT') return 'does not exist'
  if (code === 'EACCES' || code === 'EPERM') return 'may not be read by this user'
  if (code === 'EISDIR') return 'is a directory, not a file'
  if (code === 'ENOTDIR') return 'does not exist: a part of its path is a file, not a directory'
  if (code === 'ENAMETOOLONG') return 'does not exist: its name is too long'
  if (code === 'ELOOP') return 'cannot be read: its symbolic links form a loop'
  return `cannot be read (${code})`
}

function isMissing(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR', 'ENAMETOOLONG'].includes(codeOf(error))
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown reason'
}
