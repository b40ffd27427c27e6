import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TimeWindow, weekdays } from '../../src/core/time-window.ts'

const workdays = weekdays.slice(0, 5)
const office = new TimeWindow({ days: workdays, from: '08:00', to: '18:00', zone: 'Europe/Berlin' })
const night = new TimeWindow({ days: ['fri'], from: '22:00', to: '06:00', zone: 'UTC' })
const always = new TimeWindow({ days: weekdays, from: '00:00', to: '24:00', zone: 'UTC' })

for (const [window, time, isIn] of [
  [office, '2026-11-23T08:00:00+01:00', true],
  [office, '2026-11-23T07:59:59+01:00', false],
  [office, '2026-11-23T17:59:59+01:00', true],
  [office, '2026-11-23T18:00:00+01:00', false],
  [office, '2026-11-22T12:00:00+01:00', false],
  // In summer.
  [office, '2026-07-06T06:00:00Z', true],
  [office, '2026-07-06T05:59:59Z', false],
  [night, '2026-11-27T22:00:00Z', true],
  [night, '2026-11-28T05:59:59Z', true],
  [night, '2026-11-28T06:00:00Z', false],
  [night, '2026-11-27T05:00:00Z', false],
  [night, '2026-11-28T22:00:00Z', false],
  [always, '2026-11-22T00:00:00Z', true],
  [always, '2026-11-22T23:59:59Z', true],
] as const)
  test(`${time} is ${isIn ? 'in' : 'not in'} ${window.text}`, () => {
    assert.equal(window.has(Date.parse(time)), isIn)
  })

test('An unknown time zone is an error', () => {
  assert.throws(() => new TimeWindow({ days: workdays, from: '08:00', to: '18:00', zone: 'Mars/Base' }), RangeError)
})
