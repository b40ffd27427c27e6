import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ByName, KnownFields } from '../../src/wire/fields.ts'

/**
 * The names of the fields in a text, found one after the other. `undefined`: a line has no colon.
 */
function namesIn(fields: KnownFields<string>, text: string): readonly string[] | undefined {
  const names: string[] = []
  let field: ReturnType<typeof fields.at>
  for (let start = 0; start < text.length;) {
    const end = text.indexOf('\r\n', start)
    field = fields.at(text, start, end, field)
    if (field === undefined) return undefined
    assert.equal(field.facts, field.written.toLowerCase())
    names.push(field.written)
    start = end + 2
  }
  return names
}

test('The fields of a head are those of its text, whatever the heads before it were', () => {
  const name = fc.constantFrom('Host', 'host', 'Ho', 'Hosts', '', 'Cookie', 'Cookie2', 'x'.repeat(70), 'a b')
  const line = fc.oneof(
    {
      weight: 9,
      arbitrary: fc.tuple(name, fc.constantFrom('', ':', ' : ', 'Host: x')).map((parts) => parts.join(':')),
    },
    name,
  )
  const heads = fc.array(fc.array(line, { maxLength: 6 }), { maxLength: 12 })
  const property = fc.property(heads, (all) => {
    const fields = new KnownFields((written) => written.toLowerCase())
    for (const lines of all) {
      const isValid = lines.every((text) => text.includes(':'))
      const expected = isValid ? lines.map((text) => text.slice(0, text.indexOf(':'))) : undefined
      assert.deepEqual(namesIn(fields, lines.map((text) => `${text}\r\n`).join('')), expected)
    }
  })
  fc.assert(property, { numRuns: 2_000 })
})

test('Names that clients invent are neither remembered nor kept in memory', () => {
  let made = 0
  const names = new ByName((name) => ({ name, count: (made += 1) }))
  const long = 'x'.repeat(65)
  for (const name of [long, long]) assert.equal(names.of(name).name, name)
  assert.equal(made, 2)
  assert.ok(!names.remembers(long))

  for (let count = 0; count < 2_000; count += 1) names.of(`invented-${count}`)
  assert.ok(names.remembers('invented-0'))
  assert.ok(!names.remembers('invented-1999'))

  const fields = new KnownFields((written) => written)
  const first = fields.at('a: 1\r\n', 0, 4, undefined)
  fields.at(`${long}: 1\r\n`, 0, 68, first)
  assert.equal(first?.next, undefined)
})
