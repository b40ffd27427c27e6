import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EjectConfig } from '../../../src/config/model/upstream.ts'
import { Balancer, type Candidate, candidate } from '../../../src/proxy/targets/balancer.ts'
import { Target } from '../../../src/proxy/targets/target.ts'
import type { Transport } from '../../../src/transport/transport.ts'

const eject: EjectConfig = { failures: 1, statuses: [], forMs: 1_000, atMostMs: 60_000 }
const nowhere: Transport = { dispatch: () => {}, close: () => Promise.resolve(), destroy: () => Promise.resolve() }

interface Settings {
  readonly weight?: number
  readonly backup?: boolean
}

/** Targets with the names 1, 2 and so on, whose clock the test moves. */
function targets(clock: { now: number }, ...settings: readonly Settings[]): Candidate[] {
  return settings.map(({ weight = 1, backup = false }, index) =>
    candidate(
      new Target(
        `http://10.0.0.${index + 1}:80`,
        () => nowhere,
        () => clock.now,
      ),
      { weight, backup, limit: 100 },
    ),
  )
}

const numberOf = (each: Candidate | undefined) => Number(each?.target.name.at(-4))
const fail = (each: Candidate | undefined) => each?.target.health.fail('refused', eject)

function counts(choose: () => Candidate | undefined, times: number): readonly number[] {
  const found = [0, 0, 0]
  for (let at = 0; at < times; at++) found[numberOf(choose()) - 1]! += 1
  return found
}

test('In turn, each target gets the share of its weight, and a heavy one not all of its requests at once', () => {
  const balancer = new Balancer({ balance: 'round_robin', slowStartMs: 0 })
  const all = targets({ now: 0 }, { weight: 3 }, { weight: 1 }, { weight: 1 })

  const order = Array.from({ length: 5 }, () => numberOf(balancer.choose(all)))

  assert.deepEqual(order, [1, 2, 1, 3, 1])
})

test('The target with the fewest open requests for its weight gets the next one', () => {
  const balancer = new Balancer({ balance: 'least_requests', slowStartMs: 0 })
  const all = targets({ now: 0 }, {}, {}, { weight: 4 })
  const [first, second, third] = all as [Candidate, Candidate, Candidate]
  first.target.open = 3
  second.target.open = 1
  third.target.open = 8

  assert.equal(balancer.choose(all), second)
  second.target.open = 4
  third.target.open = 6
  assert.equal(balancer.choose(all), third)
})

test('Idle targets take turns', () => {
  const balancer = new Balancer({ balance: 'least_requests', slowStartMs: 0 })
  const all = targets({ now: 0 }, {}, {}, {})

  assert.deepEqual(
    counts(() => balancer.choose(all), 30),
    [10, 10, 10],
  )
})

const sessions = Array.from({ length: 4_000 }, (_, index) => `session-${index}`)

test('A session stays at its target, and sessions are spread by weight', () => {
  const balancer = new Balancer({ balance: 'sticky', slowStartMs: 0 })
  const all = targets({ now: 0 }, {}, {}, { weight: 2 })
  const found = [0, 0, 0]

  for (const session of sessions) {
    const chosen = numberOf(balancer.choose(all, session))
    assert.equal(numberOf(balancer.choose(all, session)), chosen)
    found[chosen - 1]! += 1
  }

  for (const [index, share] of [0.25, 0.25, 0.5].entries())
    assert.ok(Math.abs((found[index] ?? 0) / sessions.length - share) < 0.03, String(found))
})

test('One target more moves only the sessions that it gets', () => {
  const balancer = new Balancer({ balance: 'sticky', slowStartMs: 0 })
  const all = targets({ now: 0 }, {}, {}, {}, {})
  const before = all.slice(0, 3)

  const moved = sessions.filter((session) => balancer.choose(all, session) !== balancer.choose(before, session))

  assert.ok(Math.abs(moved.length / sessions.length - 1 / 4) < 0.03, String(moved.length))
  assert.ok(moved.every((session) => balancer.choose(all, session) === all[3]))
})

test('The sessions of an ejected target are spread, and come back to it', () => {
  const balancer = new Balancer({ balance: 'sticky', slowStartMs: 0 })
  const clock = { now: 0 }
  const all = targets(clock, {}, {}, {})
  const own = sessions.filter((session) => balancer.choose(all, session) === all[0])
  fail(all[0])

  const elsewhere = new Set(own.map((session) => numberOf(balancer.choose(all, session))))
  clock.now += eject.forMs
  const back = own.every((session) => balancer.choose(all, session) === all[0])

  assert.deepEqual([...elsewhere].toSorted(), [2, 3])
  assert.ok(back)
})

test('A request without a session goes to the least busy target', () => {
  const balancer = new Balancer({ balance: 'sticky', slowStartMs: 0 })
  const all = targets({ now: 0 }, {}, {})
  all[0]!.target.open = 1

  assert.equal(balancer.choose(all), all[1])
})

test('A backup gets requests only while no other target is available', () => {
  const balancer = new Balancer({ balance: 'round_robin', slowStartMs: 0 })
  const clock = { now: 0 }
  const all = targets(clock, {}, {}, { backup: true })
  const next = () => balancer.choose(all)

  assert.deepEqual(counts(next, 10), [5, 5, 0])
  fail(all[0])
  assert.deepEqual(counts(next, 4), [0, 4, 0])
  fail(all[1])
  assert.deepEqual(counts(next, 4), [0, 0, 4])
  clock.now += eject.forMs
  assert.deepEqual(counts(next, 10), [5, 5, 0])
})

test('When all targets are ejected, they get requests nevertheless', () => {
  const balancer = new Balancer({ balance: 'round_robin', slowStartMs: 0 })
  const all = targets({ now: 0 }, {}, {}, { backup: true })
  all.forEach(fail)

  assert.deepEqual(
    counts(() => balancer.choose(all), 10),
    [5, 5, 0],
  )
})

test('A repeated request goes to another target that is available, or to none', () => {
  const balancer = new Balancer({ balance: 'sticky', slowStartMs: 0 })
  const all = targets({ now: 0 }, {}, {})

  assert.equal(balancer.choose(all, 'session', all[0]), all[1])
  assert.equal(balancer.choose(all, 'session', all[1]), all[0])
  fail(all[1])
  assert.equal(balancer.choose(all, 'session', all[0]), undefined)
})

test('During a slow start, a target that returns gets a growing share', () => {
  const balancer = new Balancer({ balance: 'round_robin', slowStartMs: 10_000 })
  const clock = { now: 100_000 }
  const all = targets(clock, {}, {})
  fail(all[0])
  const shares = [0, 5_000, 10_000].map((after) => {
    clock.now = 100_000 + eject.forMs + after
    return counts(() => balancer.choose(all), 110)[0]
  })

  assert.deepEqual(shares, [10, 37, 55])
})

test('Without a target there is no choice', () => {
  assert.equal(new Balancer({ balance: 'sticky', slowStartMs: 0 }).choose([], 'session'), undefined)
})

test('A target without a free connection gets no request while another one has a free one', () => {
  const balancer = new Balancer({ balance: 'round_robin', slowStartMs: 0 })
  const all = targets({ now: 0 }, {}, {}, {})
  all[1]!.target.open = 100

  assert.deepEqual(
    counts(() => balancer.choose(all), 10),
    [5, 0, 5],
  )
  for (const each of all) each.target.open = 100
  const [one = 0, two = 0, three = 0] = counts(() => balancer.choose(all), 30)
  assert.ok(one > 8 && two > 8 && three > 8)
})

test('A target that is known from before goes on with its turn', () => {
  const balancer = new Balancer({ balance: 'round_robin', slowStartMs: 0 })
  let all = targets({ now: 0 }, {}, {}, {})
  const order: number[] = []
  for (let at = 0; at < 6; at++) {
    order.push(numberOf(balancer.choose(all)))
    all = all.map((each) => candidate(each.target, each, each))
  }

  assert.deepEqual(order, [1, 2, 3, 1, 2, 3])
})
