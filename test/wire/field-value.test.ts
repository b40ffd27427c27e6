import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { headEndOf } from '../../src/wire/fields.ts'
import { searchFor } from '../support/searches.ts'

/** The same as `headEndOf`, a byte at a time. */
function slowHeadEndOf(bytes: Uint8Array): number {
  const text = Buffer.from(bytes).toString('latin1')
  const end = text.indexOf('\r\n\r\n')
  // A last CR may belong to a line end.
  const head = end === -1 ? text.replace(/\r$/, '') : text.slice(0, end)
  if (/[^\t\x20-\x7e\x80-\xff]/.test(head.replaceAll('\r\n', ''))) return -2
  return end
}

/** The bytes at some place of larger memory whose other bytes are control characters. */
function at(offset: number, bytes: Uint8Array): Uint8Array {
  const memory = new Uint8Array(offset + bytes.length + 5)
  memory.set(bytes, offset)
  return memory.subarray(offset, offset + bytes.length)
}

test('Every byte at every place of a word is judged like a byte alone', () => {
  for (let byte = 0; byte < 256; byte += 1)
    for (let place = 0; place < 8; place += 1)
      for (const others of [0x20, 0x41, 0x7e, 0x80, 0xff])
        for (let offset = 0; offset < 4; offset += 1) {
          const bytes = new Uint8Array(12).fill(others)
          bytes[place] = byte
          bytes.set(Buffer.from('\r\n\r\n'), 8)
          assert.equal(headEndOf(at(offset, bytes)), slowHeadEndOf(bytes), `${byte} among ${others} at ${place}`)
        }
})

test('The end of a head is found in bytes of any kind, at any place in memory', () => {
  const byte = fc.oneof(
    { weight: 8, arbitrary: fc.integer({ min: 0x20, max: 0x7e }) },
    { weight: 3, arbitrary: fc.constantFrom(0x0d, 0x0a, 0x09, 0x7f, 0x80, 0xff) },
    fc.integer({ min: 0, max: 255 }),
  )
  const piece = fc.oneof(
    { weight: 4, arbitrary: fc.array(byte, { maxLength: 9 }) },
    { weight: 4, arbitrary: fc.array(fc.integer({ min: 0x20, max: 0x7e }), { maxLength: 40 }) },
    { weight: 3, arbitrary: fc.constantFrom([0x0d, 0x0a], [0x0d, 0x0a, 0x0d, 0x0a], [0x0d]) },
  )
  const property = fc.property(fc.array(piece, { maxLength: 12 }), fc.nat({ max: 7 }), (pieces, offset) => {
    const bytes = Uint8Array.from(pieces.flat())
    assert.equal(headEndOf(at(offset, bytes)), slowHeadEndOf(bytes))
  })
  fc.assert(property, { numRuns: searchFor(200_000, 10_000) })
})
