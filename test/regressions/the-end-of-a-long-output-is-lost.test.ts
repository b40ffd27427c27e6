import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { block } from '../support/block.ts'
import { startCommand } from '../support/command.ts'

const schema = readFileSync(new URL('../../schemas/gateway.schema.json', import.meta.url), 'utf8')

test('A reader that is slow gets the whole output of a command', async (t) => {
  const command = startCommand(t, ['schema'])

  // The command writes while its output is not read.
  block(2_000)

  assert.equal(await command.ended, 0)
  assert.equal(command.out(), schema)
})
