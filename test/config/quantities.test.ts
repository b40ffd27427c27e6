import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { amountOf, durationText, rateOf } from '../../src/config/quantities.ts'

const { definitions } = JSON.parse(
  readFileSync(new URL('../../schemas/gateway.schema.json', import.meta.url), 'utf8'),
) as { readonly definitions: Readonly<Record<string, { readonly pattern: string }>> }

function matchesSchema(quantity: string, text: string): boolean {
  return new RegExp(definitions[quantity]?.pattern ?? assert.fail(), 'u').test(text)
}

for (const [quantity, text, amount] of [
  ['duration', '0s', 0],
  ['duration', '500ms', 500],
  ['duration', '30s', 30_000],
  ['duration', '30m', 1_800_000],
  ['duration', '12h', 43_200_000],
  ['duration', '1d', 86_400_000],
  ['size', '512b', 512],
  ['size', '16kb', 16_384],
  ['size', '1mb', 1_048_576],
] as const) {
  test(`the ${quantity} ${text}`, () => {
    assert.ok(matchesSchema(quantity, text))
    assert.equal(amountOf(text), amount)
  })
}

for (const [text, count, perMs] of [
  ['600/m', 600, 60_000],
  ['20/s', 20, 1_000],
  ['1/h', 1, 3_600_000],
] as const) {
  test(`the rate ${text}`, () => {
    assert.ok(matchesSchema('rate', text))
    assert.deepEqual(rateOf(text), { count, perMs })
  })
}

const invalid = {
  duration: ['', '30', 'm', '-1s', '1.5h', '1h30m', '1 h', '30M', '30min', '1e3s', '9999999999s', '30s\n'],
  size: ['', '16', 'kb', '16k', '16KB', '1gb', '-1b', '1.5mb'],
  rate: ['', '600', '/m', '0/m', '-1/s', '1.5/s', '1 / s', '1/d', '1/min', '600/m\n', '9999999999/s'],
}

for (const [quantity, texts] of Object.entries(invalid))
  for (const text of texts)
    test(`${JSON.stringify(text)} is not a valid ${quantity}`, () => {
      assert.ok(!matchesSchema(quantity, text))
    })

test('A duration is shown as a whole number of its largest unit', () => {
  assert.deepEqual([0, 1500, 90_000, 5_400_000, 43_200_000, 604_800_000].map(durationText), [
    ...['0ms', '1500ms', '90s', '90m', '12h', '7d'],
  ])
})
