import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { readInput } from '../config/document/files.ts'
import type { Claims } from '../core/claims.ts'
import { OperatorError, reason } from '../core/errors.ts'
import { isObject } from '../core/json.ts'

const maxBytes = 1024 * 1024
/** In characters. The lines of the gateway's log are much shorter. */
const maxLineBytes = 1024 * 1024

/** The name of a file argument in messages; `-` is standard input. */
export function displayName(file: string): string {
  return file === '-' ? 'standard input' : file
}

/**
 * Reads the file. `purpose` says what the file is for.
 * @throws {OperatorError} when it cannot be read; the message quotes none of its content
 */
export function readText(file: string, purpose?: string): string {
  const content = readInput(file === '-' ? 0 : file, maxBytes)
  const more = purpose === undefined ? '' : `. ${purpose}`
  if ('why' in content) throw new OperatorError(`${displayName(file)} ${content.why}${more}`)
  return content.bytes.toString('utf8')
}

/**
 * Writes a new file; with `force` it overwrites an existing one.
 * @throws {OperatorError} when it cannot be written
 */
export function writeText(file: string, text: string, force: boolean): void {
  try {
    writeFileSync(file, text, { flag: force ? 'w' : 'wx' })
  } catch (error) {
    throw new OperatorError(`${file} cannot be written: ${reason(error)}`, { cause: error })
  }
}

/**
 * Writes a file, or replaces it in one step: a gateway that reads it gets the old or the new text.
 * @param mode the permissions; absent: those of the file that it replaces
 * @throws {OperatorError} when it cannot be written
 */
export function replaceText(file: string, text: string, mode?: number): void {
  try {
    mkdirSync(dirname(file), { recursive: true })
    const existing = statSync(file, { throwIfNoEntry: false })
    const target = existing === undefined ? file : realpathSync(file)
    const fresh = join(dirname(target), `.${basename(target)}.${process.pid}`)
    const descriptor = openSync(fresh, 'wx', mode ?? (existing && existing.mode & 0o777))
    try {
      writeSync(descriptor, text)
      fsyncSync(descriptor)
      renameSync(fresh, target)
    } finally {
      closeSync(descriptor)
      rmSync(fresh, { force: true })
    }
  } catch (error) {
    throw new OperatorError(`${file} cannot be written: ${reason(error)}`, { cause: error })
  }
}

/**
 * Reads a stream of text line by line. Skips lines above 1 Mi characters and never holds one in
 * memory.
 */
export async function* readLines(input: AsyncIterable<unknown>): AsyncGenerator<string> {
  let line = ''
  const isWithinLimit = () => line.length <= maxLineBytes
  for await (const chunk of input)
    for (const [index, piece] of String(chunk).split('\n').entries()) {
      if (index > 0) {
        if (isWithinLimit()) yield line
        line = ''
      }
      if (isWithinLimit()) line += piece
    }
  if (line !== '' && isWithinLimit()) yield line
}

const example = '{ "sub": "u1", "groups": ["admins"] }'

/**
 * Reads claims from a JSON file; `-` is standard input.
 * @throws {OperatorError} when the file cannot be read or is invalid; the message quotes no claim
 */
export function readClaims(file: string): Claims {
  const name = displayName(file)
  const claims = parseJson(readText(file, `--as needs a JSON file of claims, such as ${example}`), name)
  if (!isObject(claims)) throw new OperatorError(`${name} must be a JSON object of claims, such as ${example}`)
  return claims as Claims
}

function parseJson(text: string, name: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The error of the parser quotes the text, and so the claims.
    throw new OperatorError(`${name} is not JSON`)
  }
}
