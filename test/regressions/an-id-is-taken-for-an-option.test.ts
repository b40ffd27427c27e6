import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readExplainCall } from '../../src/cli/explain.ts'
import { randomId } from '../../src/core/random.ts'

test('A request id that is pasted after explain --log is never read as an option', () => {
  const ids = Array.from({ length: 5000 }, randomId)
  assert.ok(ids.every((id) => /^[A-Za-f][\w-]{15}$/.test(id)))
  assert.equal(new Set(ids).size, ids.length)
  for (const id of ids) assert.ok('carryOut' in readExplainCall(['--log', 'gateway.log', id]), id)
})

test('A request id of a proxy may begin with a dash, and the error says how to write it', () => {
  const hint = 'write an id that begins with "-" at the end, after --'
  for (const argv of [
    ['--log', 'gateway.log', '-Dk3'],
    ['-Dk3', '--log', 'gateway.log'],
    ['--log=gateway.log', '-Dk3', '--format', 'json'],
  ])
    assert.deepEqual(readExplainCall(argv), { fault: `unknown option -D; ${hint}` })
  assert.deepEqual(readExplainCall(['--log', 'gateway.log', '--k3']), { fault: `unknown option --k3; ${hint}` })
  assert.ok('carryOut' in readExplainCall(['--log', 'gateway.log', '--', '-Dk3']))
  assert.deepEqual(readExplainCall(['--log', 'a', '--log', 'b', 'x']), { fault: '--log is given twice' })
})
