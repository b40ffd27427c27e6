import assert from 'node:assert/strict'
import { test } from 'node:test'
import { contrast, expandColor, textColorOn } from '../../src/config/colors.ts'

for (const [one, other, expected] of [
  ['#000000', '#ffffff', 21],
  ['#ffffff', '#ffffff', 1],
  // The grey that is known for just meeting WCAG AA on white, and the next lighter one, which does
  // not.
  ['#767676', '#ffffff', 4.54],
  ['#ffffff', '#777777', 4.48],
  ['#ff0000', '#ffffff', 4.0],
  ['#0000ff', '#ffffff', 8.59],
] as const)
  test(`the contrast of ${one} on ${other} is ${expected}`, () => {
    assert.equal(contrast(one, other).toFixed(2), expected.toFixed(2))
  })

test('The text on a button has enough contrast on every color', () => {
  for (let grey = 0; grey < 256; grey += 1) {
    const part = grey.toString(16).padStart(2, '0')
    for (const color of [`#${part}${part}${part}`, `#${part}0000`, `#00${part}00`, `#ff${part}ff`])
      assert.ok(contrast(textColorOn(color), color) >= 4.5, color)
  }
})

test('A short color is expanded', () => {
  assert.equal(expandColor('#A1f'), '#aa11ff')
  assert.equal(expandColor('#A1F203'), '#a1f203')
})
