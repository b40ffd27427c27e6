import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { LinearPattern } from '../../src/core/linear-pattern.ts'

for (const [pattern, matching, others] of [
  ['team-[a-z]+-admin', ['team-a-admin', 'team-blue-admin'], ['team--admin', 'xteam-a-admin', 'team-a-admin2', '']],
  ['^team-.*$', ['team-', 'team-ü😀'], ['Team-a', 'team-\n', 'a team-']],
  ['(dev|ops)?', ['', 'dev', 'ops'], ['devops', 'de']],
  ['a{2}b{1,2}c{2,}', ['aabcc', 'aabbccc'], ['abcc', 'aabbbcc', 'aabc']],
  ['[^\\d\\s-]\\$', ['a$', '😀$'], ['1$', '-$', ' $', 'a']],
  ['\\w+@\\[x\\]', ['ab_1@[x]'], ['é@[x]']],
  ['[-a]|[b-]|[\\]]', ['-', 'a', 'b', ']'], ['c', '']],
  ['((a|b)(c|d)){2}', ['acbd', 'bdbd'], ['ac', 'abcd']],
  ['', [''], ['a']],
  [`${'('.repeat(80)}a${')*'.repeat(80)}`, ['aaa'], ['b']],
  ['a\\$$', ['a$'], ['a']],
] as const)
  test(`The pattern ${pattern} matches whole texts`, () => {
    const compiled = new LinearPattern(pattern)
    for (const text of matching) assert.equal(compiled.matches(text), true, text)
    for (const text of others) assert.equal(compiled.matches(text), false, text)
  })

for (const [pattern, message] of [
  ['(a', 'a "(" has no ")"'],
  ['a)', '")" without "("'],
  ['[a', 'a "[" has no "]"'],
  ['*a', 'write "\\*" for "*" itself'],
  ['a**', '"*" repeats nothing at character 3'],
  ['^a**', '"*" repeats nothing at character 4'],
  ['a+?', '"?" repeats nothing'],
  ['(?=a)', '"(?" is supported as "(?:" only'],
  ['(?<n>a)', '"(?" is supported as "(?:" only'],
  ['(a)\\1', '"\\1" is not supported'],
  ['\\bword', '"\\b" is not supported'],
  ['\\p{L}', '"\\p" is not supported'],
  ['[z-a]', 'a range such as [a-z]'],
  ['a{3,2}', 'must repeat from 0 to 100 times'],
  ['a{101}', 'must repeat from 0 to 100 times'],
  ['a{x}', 'write "\\{" for a brace'],
  ['a^b', 'write "\\^" for "^" itself'],
  ['((a{100}){100}){100}', 'the pattern is too large'],
  ['((((){100}){100}){100}){100}', 'the pattern is too large'],
  ['a'.repeat(257), 'a pattern has at most 256 characters'],
  ['a\\', 'the pattern ends too early'],
] as const)
  test(`The pattern ${pattern.slice(0, 20)} is rejected, and the message says why`, () => {
    assert.throws(
      () => new LinearPattern(pattern),
      (error: Error) => {
        assert.ok(error instanceof SyntaxError)
        assert.ok(error.message.includes(message), error.message)
        return true
      },
    )
  })

/** Nested repetitions may have more steps than the limit. */
function isTooLarge(pattern: string): boolean {
  try {
    new LinearPattern(pattern)
    return false
  } catch (error) {
    return /too large/.test(String(error))
  }
}

test('A pattern has the same result as a regular expression of ECMAScript', () => {
  const atom = fc.constantFrom('a', 'b', '.', '[ab]', '[^a]', '\\d', '\\.', '1')
  const { pattern } = fc.letrec<{ pattern: string; item: string }>((tie) => ({
    pattern: fc.array(tie('item'), { maxLength: 4 }).map((items) => items.join('')),
    item: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      atom,
      fc.tuple(atom, fc.constantFrom('', '*', '+', '?', '{2}', '{1,2}', '{0,1}', '{1,}')).map((two) => two.join('')),
      fc
        .tuple(tie('pattern'), tie('pattern'), fc.constantFrom('', '*', '+', '?', '{2}'))
        .map(([one, other, count]) => `(${one}|${other})${count}`),
    ),
  }))
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '1', '.', '\n', '😀'), maxLength: 8 })

  fc.assert(
    fc.property(pattern, text, (written, value) => {
      fc.pre(written.length <= 200 && !isTooLarge(written))
      assert.equal(new LinearPattern(written).matches(value), new RegExp(`^(?:${written})$`, 'u').test(value))
    }),
    { numRuns: 2000 },
  )
})

test('A pattern that takes exponential time elsewhere looks at each character once', () => {
  let steps = 0
  const [nested, text] = [new LinearPattern('(a*)*(a|a)*(a|aa)+b'), 'a'.repeat(1024)]
  const counted = {
    [Symbol.iterator]: function* () {
      for (const character of text) {
        steps += 1
        yield character
      }
    },
    length: text.length,
  }

  assert.equal(nested.matches(counted as unknown as string), false)
  assert.equal(steps, 1024)
  assert.equal(nested.matches(`${'a'.repeat(1023)}b`), true)
  assert.equal(nested.matches(`${'a'.repeat(1024)}b`), false, 'longer texts do not match')
})
