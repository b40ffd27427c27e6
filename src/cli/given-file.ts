import { readHandedOver } from '../config/files.ts'
import { OperatorError } from '../core/errors.ts'

const mostBytes = 1024 * 1024

/** What a file is called that was named on the command line; `-` is standard input. */
export function calledFile(file: string): string {
  return file === '-' ? 'standard input' : file
}

/**
 * What it holds.
 * @throws {OperatorError} which never quotes it
 */
export function textOf(file: string): string {
  const content = readHandedOver(file === '-' ? 0 : file, mostBytes)
  if ('why' in content) throw new OperatorError(`${calledFile(file)} ${content.why}`)
  return content.bytes.toString('utf8')
}
