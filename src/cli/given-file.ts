import { readInput } from '../config/document/files.ts'
import { OperatorError } from '../core/errors.ts'

const mostBytes = 1024 * 1024
/** In characters. No line of ours comes near. */
const longestLine = 1024 * 1024

/** What a file is called that was named on the command line; `-` is standard input. */
export function calledFile(file: string): string {
  return file === '-' ? 'standard input' : file
}

/**
 * What it holds.
 * @throws {OperatorError} which never quotes it
 */
export function textOf(file: string): string {
  const content = readInput(file === '-' ? 0 : file, mostBytes)
  if ('why' in content) throw new OperatorError(`${calledFile(file)} ${content.why}`)
  return content.bytes.toString('utf8')
}

/**
 * The lines of a stream of text. One that is longer than any of ours is left out, and never held in
 * memory.
 */
export async function* linesOf(input: AsyncIterable<unknown>): AsyncGenerator<string> {
  let line = ''
  const isOurs = () => line.length <= longestLine
  for await (const chunk of input)
    for (const [index, piece] of String(chunk).split('\n').entries()) {
      if (index > 0) {
        if (isOurs()) yield line
        line = ''
      }
      if (isOurs()) line += piece
    }
  if (line !== '' && isOurs()) yield line
}
