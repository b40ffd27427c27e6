import assert from 'node:assert/strict'
import { readImportCall } from '../../src/cli/import.ts'
import { recordingTerminal, type Said } from './command-line.ts'

/** What `gatehouse import` writes with these arguments, and its notes. */
export async function imported(...args: readonly string[]): Promise<Said> {
  const { terminal, said } = recordingTerminal()
  const call = readImportCall(args)
  assert.ok('carryOut' in call, JSON.stringify(call))
  assert.equal(await call.carryOut(terminal), 0)
  return said
}
