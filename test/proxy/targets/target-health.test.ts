import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EjectConfig } from '../../../src/config/model/upstream.ts'
import { TargetHealth } from '../../../src/proxy/targets/target-health.ts'

const eject: EjectConfig = { failures: 3, statuses: [], forMs: 1_000, atMostMs: 3_000 }

function healthAt(clock: { now: number }) {
  const health = new TargetHealth(() => clock.now)
  const failTimes = (times: number) => Array.from({ length: times }, () => health.fail('refused', eject)).at(-1)
  return { health, failTimes }
}

test('Only failures in succession eject a target', () => {
  const { health, failTimes } = healthAt({ now: 0 })

  failTimes(2)
  health.succeed()
  failTimes(2)
  assert.equal(health.isEjected, false)
  assert.deepEqual(failTimes(1), { reason: 'refused', forMs: 1_000 })
  assert.equal(health.isEjected, true)
})

test('After its time, one more failure ejects a target for twice as long, up to the longest time', () => {
  const clock = { now: 0 }
  const { health, failTimes } = healthAt(clock)
  failTimes(3)
  const times = [1_000, 2_000, 3_000].map((pause) => {
    clock.now += pause
    assert.equal(health.isEjected, false)
    return failTimes(1)?.forMs
  })

  assert.deepEqual(times, [2_000, 3_000, 3_000])
})

test('A target that comes and goes is ejected for longer each time', () => {
  const clock = { now: 0 }
  const { health, failTimes } = healthAt(clock)
  failTimes(3)
  clock.now += 1_000
  health.succeed()

  assert.equal(failTimes(3)?.forMs, 2_000)
})

test('A target that worked for as long as it had been ejected begins anew', () => {
  const clock = { now: 0 }
  const { health, failTimes } = healthAt(clock)
  failTimes(3)
  clock.now += 1_000
  health.succeed()
  clock.now += 1_000
  health.succeed()

  assert.equal(failTimes(3)?.forMs, 1_000)
})

test('The return of a target is reported once', () => {
  const clock = { now: 0 }
  const { health, failTimes } = healthAt(clock)
  assert.equal(health.succeed(), false)
  failTimes(3)
  assert.equal(health.succeed(), false, 'a response to an earlier request')
  clock.now += 1_000

  assert.equal(health.succeed(), true)
  assert.equal(health.succeed(), false)
})

test('Failures during an ejection do not lengthen it', () => {
  const clock = { now: 0 }
  const { health, failTimes } = healthAt(clock)
  failTimes(3)

  assert.equal(failTimes(10), undefined)
  clock.now += 1_000
  assert.equal(health.isEjected, false)
})

test('Without ejection, failures are remembered only', () => {
  const { health } = healthAt({ now: 0 })
  for (let times = 0; times < 100; times++) health.fail('refused', undefined)

  assert.equal(health.isEjected, false)
  assert.equal(health.reason, 'refused')
})
