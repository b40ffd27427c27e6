import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { fieldLine } from '../../src/wire/fields.ts'

test('A field follows the line before it', () => {
  assert.equal(fieldLine('X-A', 'a\tb é'), '\r\nX-A: a\tb é')
  assert.equal(fieldLine('x-a', ''), '\r\nx-a: ')
})

test('A field with CR, LF, NUL or a character beyond a byte is never written', () => {
  for (const evil of ['a\rb', 'a\nb', 'a\0b', 'a\x7fb', '\r\nX-Evil: 1', 'a\u010ab', '\u{1f600}']) {
    assert.equal(fieldLine('X-A', evil), undefined)
    assert.equal(fieldLine(`X-${evil}`, 'a'), undefined)
    // The name is remembered, and rejected again.
    assert.equal(fieldLine(`X-${evil}`, 'a'), undefined)
  }
  for (const name of ['', ' X-A', 'X-A ', 'X A', 'X-A:', 'é']) assert.equal(fieldLine(name, 'a'), undefined)
})

test('A line never contains a further line, for any name and value', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.array(fc.constantFrom('\r', '\n', '\r\n', ':', 'a', ' ')).map((parts) => parts.join('')),
  )
  fc.assert(
    fc.property(text, text, (name, value) => {
      const line = fieldLine(name, value)
      assert.ok(line === undefined || /^\r\n[!-9;-~]+: [\t -~\x80-\xff]*$/.test(line))
    }),
  )
})
