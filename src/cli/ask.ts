import { createInterface, type Interface } from 'node:readline'
import { OperatorError } from '../core/errors.ts'
import type { Terminal } from './command.ts'

/** Asks on the terminal that the process has, a line at a time; `undefined` when there is none. */
export function askOnTerminal(): Terminal['ask'] {
  if (!process.stdin.isTTY || !process.stdout.isTTY) return undefined
  let reader: Interface | undefined
  let lines: AsyncIterator<string> | undefined
  return async (question) => {
    reader ??= createInterface({ input: process.stdin, output: process.stdout })
    // Unlike question() it keeps lines that come before they are asked for: pasted ones do.
    lines ??= reader[Symbol.asyncIterator]()
    reader.setPrompt(question)
    reader.prompt()
    const { value, done } = await lines.next()
    if (done !== true) return value
    // Ctrl+D and Ctrl+C leave the cursor behind the question.
    process.stdout.write('\n')
    throw new OperatorError('the questions were not answered to the end: nothing is written')
  }
}
