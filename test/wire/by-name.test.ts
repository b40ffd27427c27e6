import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ByName } from '../../src/wire/fields.ts'

test('a name never gets the value of another one, in whichever order names are asked for', () => {
  const names = fc.oneof(
    fc.constantFrom('Host', 'host', 'Accept', 'Cookie', 'Cookia', '', 'x'.repeat(64), 'x'.repeat(65), 'x'.repeat(66)),
    fc.string({ maxLength: 3 }),
  )
  const values = new ByName((name) => ({ name }))
  fc.assert(
    fc.property(fc.array(names, { maxLength: 40 }), (asked) => {
      for (const name of asked) assert.equal(values.of(name).name, name)
    }),
  )
})

test('invented names never displace or take the place of those that are remembered', () => {
  let made = 0
  const values = new ByName((name) => ({ name, number: made++ }))
  const host = values.of('Host')
  for (let n = 0; n < 5_000; n++) assert.equal(values.of(`X-${n}`).name, `X-${n}`)
  assert.equal(values.of('Host'), host)
  assert.equal(values.remembers('X-4999'), false)
  assert.equal(values.of('X-4999').name, 'X-4999')
  assert.equal(values.of('X-1').name, 'X-1')
})
