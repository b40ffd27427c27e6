import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hashSecret, hasHash, parseScryptHash } from '../../src/core/scrypt-hash.ts'

/** Computed with hashlib.scrypt of Python. */
const known = '$scrypt$ln=14,r=8,p=1$AAECAwQFBgcICQoLDA0ODw$11kKyiyYAc8G7rp3KmncMc44YlkdllIqxOa7pq0fMaU'

test('A hash of another program is understood', async () => {
  assert.equal(await hasHash('correct horse battery staple', parseScryptHash(known)), true)
  assert.equal(await hasHash('correct horse battery stapl', parseScryptHash(known)), false)
})

test('Two hashes of one secret differ, and both match it', async () => {
  const [one, other] = await Promise.all([hashSecret('a secret'), hashSecret('a secret')])

  assert.notEqual(one, other)
  assert.match(one, /^\$scrypt\$ln=15,r=8,p=3\$/)
  assert.equal(await hasHash('a secret', parseScryptHash(other)), true)
})

for (const [what, text] of [
  ['no hash', 'correct horse battery staple'],
  ['another algorithm', known.replace('scrypt', 'argon2id')],
  ['low costs', known.replace('ln=14', 'ln=10')],
  ['costs that fill the memory', known.replace('ln=14', 'ln=20')],
  ['costs that keep the processor busy', known.replace('p=1', 'p=99')],
  ['a short salt', known.replace(/\$[^$]+(?=\$[^$]+$)/, '$AAAA')],
  ['a short hash', known.replace(/[^$]+$/, 'AAAA')],
  ['something behind the hash', `${known} x`],
] as const)
  test(`A line is refused that has ${what}`, () => {
    assert.throws(
      () => parseScryptHash(text),
      (error: Error) => error instanceof SyntaxError && !error.message.includes(known),
    )
  })
