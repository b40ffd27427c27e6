// Archives with the same bytes for the same files: names in order, one time, one owner, and modes
// that do not depend on the umask.
import { createHash } from 'node:crypto'
import { chmodSync, lutimesSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { runTool } from './run-tool.mjs'

/** Gives all files of a folder the time, and the modes 644 or 755. */
export function normalize(folder, epoch) {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (!entry.isSymbolicLink()) {
      const isExecutable = entry.isDirectory() || (statSync(path).mode & 0o100) !== 0
      chmodSync(path, isExecutable ? 0o755 : 0o644)
    }
    lutimesSync(path, epoch, epoch)
  }
  chmodSync(folder, 0o755)
  lutimesSync(folder, epoch, epoch)
}

/** The paths of the files below a folder, relative to another one, in order. */
export function filesBelow(folder, from = folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(from, join(entry.parentPath, entry.name)))
    .sort()
}

/**
 * A tar archive of what `paths` names in a folder.
 * @returns its bytes
 */
export function tarOf(folder, paths, epoch) {
  const order = ['--format=ustar', '--sort=name', '--no-recursion', '--null', '--files-from=-']
  const owner = [`--mtime=@${epoch}`, '--owner=0', '--group=0', '--numeric-owner']
  return runTool('tar', ['--create', '--file=-', ...order, ...owner], {
    epoch,
    cwd: folder,
    input: Buffer.from(paths.map((path) => `${path}\0`).join('')),
    encoding: 'buffer',
  })
}

/**
 * The program gzip, because the zlib of Node.js may compress differently on another processor or
 * with another version.
 */
export function gzip(bytes, epoch) {
  return runTool('gzip', ['--no-name', '--best', '--stdout'], { epoch, input: bytes, encoding: 'buffer' })
}

/** The SHA-256 of bytes, in hexadecimal. */
export function sha256(bytes) {
  return createHash('sha256').update(bytes).digest('hex')
}

/** Writes a file, and the folders that it needs. */
export function write(file, content) {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, content)
}

/** Writes SHA256SUMS for the files of a folder, as `sha256sum --check` reads it. */
export function writeSums(folder) {
  const lines = filesBelow(folder).map((name) => `${sha256(readFileSync(join(folder, name)))}  ${name}\n`)
  write(join(folder, 'SHA256SUMS'), lines.join(''))
}
