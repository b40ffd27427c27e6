import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pretty } from '../../src/observe/pretty.ts'

const line = (fields: object) =>
  JSON.stringify({ level: 'warn', time: '2026-01-02T03:04:05.678Z', msg: 'a.b', ...fields })

test('A pretty line has time, level, event and fields', () => {
  const shown = pretty(line({ sub: 'jane', reason: 'it is "so"', count: 2, names: ['a', 'b'] }), false)

  assert.equal(shown, '03:04:05.678 warn  a.b sub=jane reason="it is \\"so\\"" count=2 names=["a","b"]\n')
})

test('A pretty line has colors only when they are enabled', () => {
  assert.match(pretty(line({}), true), /\u001b\[33mwarn \u001b\[0m/)
  assert.doesNotMatch(pretty(line({ a: 1 }), false), /\u001b/)
})

test('A pretty line contains no control characters of a client', () => {
  const shown = pretty(line({ reason: '\u001b[2J\u009b2J\u202e\nmsg=forged' }), false)

  assert.match(shown, /^[ -~]+\n$/)
  assert.match(shown, /reason="\\u001b\[2J\\u009b2J\\u202e\\nmsg=forged"/)
})
