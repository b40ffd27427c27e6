import { createInterface, type Interface } from 'node:readline'
import { OperatorError } from '../core/errors.ts'
import type { Terminal } from './command.ts'

/**
 * Asks questions on the terminal of the process and reads one line for each. Returns `undefined`
 * when the process has no terminal.
 */
export function askOnTerminal(): Terminal['ask'] {
  if (!process.stdin.isTTY || !process.stdout.isTTY) return undefined
  let reader: Interface | undefined
  let lines: AsyncIterator<string> | undefined
  return async (question) => {
    reader ??= createInterface({ input: process.stdin, output: process.stdout })
    // The iterator keeps lines that arrive before their question, such as pasted lines. question()
    // loses them.
    lines ??= reader[Symbol.asyncIterator]()
    reader.setPrompt(question)
    reader.prompt()
    const { value, done } = await lines.next()
    if (done !== true) return value
    // After Ctrl+D or Ctrl+C the cursor is still on the line of the question.
    process.stdout.write('\n')
    throw new OperatorError('the input ended before all questions were answered; nothing was written')
  }
}
