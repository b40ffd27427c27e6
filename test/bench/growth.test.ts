import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { svgOf } from '../../bench/growth/chart.ts'
import { growthOf } from '../../bench/growth/curve.ts'
import { curves } from '../../bench/growth/curves.ts'
import { chartOf, type Figures, tableOf } from '../../bench/growth/figures.ts'
import { acts, costsOf, mostPerSecond, simulate, usageOf, type Town } from '../../bench/growth/simulation.ts'
import { markersOf } from '../../bench/page.ts'
import { root } from '../support/command.ts'

const figures = JSON.parse(readFileSync(join(root, 'bench/growth/figures.json'), 'utf8')) as Figures
const page = readFileSync(join(root, 'docs/growth.md'), 'utf8')
const measured = (name: string) => figures[name] ?? assert.fail(`${name} was not measured`)
const costs = costsOf(measured('replicas'))
const inCluster = costsOf(measured('cluster'))

const morning: Town = {
  people: 100_000,
  replicas: 16,
  morningHours: 3,
  requestsPerMinute: 20,
  tokenMinutes: 60,
  sessionHours: 4,
  isSticky: true,
  seed: 1,
}

/** A curve through these values, of which no round differs. */
const curveOf = (of: (x: number) => number, sizes = [1, 10, 100]) =>
  growthOf(sizes.map((x) => ({ x, y: { median: of(x), low: of(x), high: of(x) } })))

test('A curve is judged by the part that grows, whatever its constant part', () => {
  assert.equal(curveOf(() => 50).verdict, 'flat')
  assert.equal(curveOf((x) => 50 + 0.01 * x).verdict, 'flat')
  assert.equal(curveOf((x) => 50 + 10 * Math.log10(x)).verdict, 'slower than linear')
  assert.equal(curveOf((x) => 50 + 2 * x).verdict, 'linear')
  assert.equal(curveOf((x) => 500 + 2 * x).verdict, 'linear')
  assert.equal(curveOf((x) => 50 + x * x).verdict, 'faster than linear')
  assert.equal(curveOf((x) => 2 * x).perDecade, 10)
  assert.equal(curveOf((x) => 50 + 2 * x).slope, 2)
})

test('A curve that rises by less than its rounds differ is unclear', () => {
  const points = [1, 10].map((x) => ({ x, y: { median: 100 * (1 + x / 20), low: 90, high: 170 } }))
  assert.equal(growthOf(points).verdict, 'unclear')
})

test('The page and the pictures are those of the measured figures', () => {
  for (const { name } of curves) {
    const text = page.split(markersOf(name)[0])[1]?.split(markersOf(name)[1])[0] ?? ''
    const words = (markdown: string) => markdown.replaceAll(/[-|\s]+/g, ' ').trim()
    assert.equal(words(text), words(tableOf(measured(name))), name)
    const picture = readFileSync(join(root, `docs/images/growth/${name}.svg`), 'utf8')
    assert.equal(picture, svgOf(chartOf(measured(name))), name)
    assert.ok(page.includes(`images/growth/${name}.svg`), name)
  }
})

test('The same seed has the same morning, and another seed has about the same', () => {
  const [one, again, other] = [1, 1, 2].map((seed) => simulate({ ...morning, seed }, costs))
  assert.deepEqual(one, again)
  assert.notDeepEqual(one, other)
  assert.ok(Math.abs(one!.gatewaySeconds / other!.gatewaySeconds - 1) < 0.05)
})

test('Everybody signs in once, and each session ends once', () => {
  const { counts } = simulate(morning, costs)
  assert.ok(Math.abs(counts.sign_in / morning.people - 1) < 1e-9)
  assert.ok(Math.abs(counts.burst / morning.people - 1) < 1e-9)
})

test('Twice the endings cost twice, with any number of replicas, in one Redis and in a Cluster', () => {
  for (const replicas of [1, 16, 1_000])
    for (const [line, primaries] of [
      [costs, undefined],
      [inCluster, 3],
    ] as const)
      for (const act of acts) {
        const usage = (count: number) =>
          usageOf(line.acts[act], count, { replicas, ...(primaries && { primaries }) }, costs.acts[act])
        for (const kind of ['gateway', 'notices', 'otherNode', 'redis', 'commands', 'bytes'] as const)
          assert.ok(
            Math.abs(usage(2_000)[kind] - 2 * usage(1_000)[kind]) <= 1e-6 * usage(2_000)[kind],
            `${act} ${kind}`,
          )
      }
})

test('The model agrees with what was measured, within a factor of 1.5', () => {
  for (const [name, line, primaries] of [
    ['replicas', costs, undefined],
    ['cluster', inCluster, 3],
  ] as const)
    for (const point of measured(name).points)
      for (const act of ['burst', 'refresh'] as const) {
        const usage = usageOf(
          line.acts[act],
          1,
          { replicas: point.x, ...(primaries && { primaries }) },
          costs.acts[act],
        )
        for (const [modelled, kind] of [
          [usage.gateway * point.x, 'gateway'],
          [usage.redis, 'redis'],
          [usage.commands, 'commands'],
        ] as const) {
          const ratio = modelled / (point.costs[act]?.[kind].median ?? NaN)
          assert.ok(ratio > 1 / 1.5 && ratio < 1.5, `${name}, ${point.x} replicas, ${act}: ${kind} is ${ratio} times`)
        }
      }
})

test('More primaries do not carry more announcements, and more replicas carry fewer', () => {
  const most = (replicas: number, primaries: number) =>
    mostPerSecond('burst', { replicas, primaries }, 0.5, { costs: inCluster, single: costs }).perSecond
  assert.ok(most(256, 30) <= 1.1 * most(256, 3))
  assert.ok(most(1_000, 3) < most(100, 3))
})

test('A morning that exhausts a part says which one, when and by what', () => {
  const crowded = simulate({ ...morning, people: 10_000_000, replicas: 1_000, tokenMinutes: 5 }, costs)
  assert.equal(crowded.first?.part, 'notices')
  assert.equal(crowded.first?.by, 'refresh')
  assert.equal(simulate({ ...morning, people: 1_000, replicas: 2 }, costs).first, undefined)
})
