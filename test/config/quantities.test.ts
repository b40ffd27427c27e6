import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseDuration, parseRate, parseSize, parseWithin } from '../../src/config/quantities.ts'

for (const [text, milliseconds] of [
  ['0s', 0],
  ['500ms', 500],
  ['30s', 30_000],
  ['30m', 1_800_000],
  ['12h', 43_200_000],
  ['1d', 86_400_000],
] as const) {
  test(`the duration ${text}`, () => assert.equal(parseDuration(text), milliseconds))
}

for (const [text, bytes] of [
  ['512b', 512],
  ['16kb', 16_384],
  ['1mb', 1_048_576],
] as const) {
  test(`the size ${text}`, () => assert.equal(parseSize(text), bytes))
}

for (const text of ['', '30', 'm', '-1s', '1.5h', '1h30m', '1 h', '30M', '30min', '1e3s', '9999999999s', '30s\n']) {
  test(`${JSON.stringify(text)} is not a valid duration`, () => {
    assert.throws(() => parseDuration(text), { name: 'SyntaxError', message: /^must be a duration such as 30m/ })
  })
}

for (const text of ['', '16', 'kb', '16k', '16KB', '1gb', '-1b', '1.5mb']) {
  test(`${JSON.stringify(text)} is not a valid size`, () => {
    assert.throws(() => parseSize(text), { name: 'SyntaxError', message: /^must be a size such as 16kb/ })
  })
}

test('Both ends of a range are allowed', () => {
  const range = { from: '1s', to: '1m' }

  assert.equal(parseWithin('1000ms', range, parseDuration), 1000)
  assert.equal(parseWithin('60s', range, parseDuration), 60_000)
  assert.throws(() => parseWithin('999ms', range, parseDuration), { message: 'must be at least 1s' })
  assert.throws(() => parseWithin('61s', range, parseDuration), { message: 'must be at most 1m' })
})

for (const [text, count, perMs] of [
  ['600/m', 600, 60_000],
  ['20/s', 20, 1_000],
  ['1/h', 1, 3_600_000],
] as const) {
  test(`the rate ${text}`, () => assert.deepEqual(parseRate(text), { count, perMs }))
}

for (const text of ['', '600', '/m', '0/m', '-1/s', '1.5/s', '1 / s', '1/d', '1/min', '600/m\n', '9999999999/s']) {
  test(`${JSON.stringify(text)} is not a valid rate`, () => {
    assert.throws(() => parseRate(text), { name: 'SyntaxError', message: /^must be a rate such as 600\/m/ })
  })
}
