import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readExplainCall } from '../../src/cli/explain.ts'
import { randomId } from '../../src/core/random.ts'

test('the id of a request, pasted from a page behind explain --log, is never taken for an option', () => {
  const ids = Array.from({ length: 5000 }, randomId)
  assert.ok(ids.every((id) => /^[A-Za-f][\w-]{15}$/.test(id)))
  assert.equal(new Set(ids).size, ids.length)
  for (const id of ids) assert.ok('carryOut' in readExplainCall(['--log', 'gateway.log', id]), id)
})

test('an id of a proxy that begins with a dash can be given, and what is to be written is said', () => {
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
