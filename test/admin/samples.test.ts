import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { MetricSamples, maxSamples, mergedSamples, sampleMs } from '../../src/admin/samples.ts'
import { Metrics } from '../../src/observe/metrics.ts'

const start = 1_000_000 * sampleMs

function sampled(t: TestContext) {
  let now = start
  const metrics = new Metrics()
  const requests = metrics.counter({ name: 'gatehouse_requests_total', help: '' })
  const refusals = metrics.counter({ name: 'gatehouse_refusals_total', help: '', labels: ['code'] })
  const durations = metrics.histogram({ name: 'gatehouse_request_duration_seconds', help: '', bounds: [0.1, 0.2, 0.4] })
  const samples = new MetricSamples(metrics, { now: () => now })
  t.after(() => samples.close())
  const after = (ms: number) => {
    now += ms
    return samples.current
  }
  const merged = () => mergedSamples([samples.current], now)
  return { requests: requests.of(), refusals, durations: durations.of(), after, merged, at: () => now }
}

test('A sample has the increase of the counters since the sample before', (t) => {
  const { requests, refusals, after, merged } = sampled(t)
  refusals.of('ERR_A').add(5)
  requests.add(100)
  after(sampleMs)
  requests.add(20)
  refusals.of('ERR_B').add()
  after(sampleMs)

  const [first, second] = merged().slice(-2)

  assert.deepEqual([first?.requestsPerSecond, first?.refusals, first?.refusalsPerMinute], [10, { ERR_A: 5 }, 30])
  assert.deepEqual([second?.requestsPerSecond, second?.refusals], [2, { ERR_B: 1 }])
})

test('Quantiles are estimates from the buckets, and absent without values', (t) => {
  const { durations, after, merged } = sampled(t)
  for (let times = 0; times < 50; times += 1) durations.observe(0.05)
  for (let times = 0; times < 50; times += 1) durations.observe(0.15)
  after(sampleMs)
  durations.observe(7)
  after(sampleMs)
  after(sampleMs)

  const quantiles = merged()
    .slice(-3)
    .map((sample) => sample?.durations && [sample.durations.p50.toFixed(3), sample.durations.p99.toFixed(3)])

  assert.deepEqual(quantiles, [['0.100', '0.198'], ['0.400', '0.400'], undefined])
})

test('Samples are bounded, and a clock that was set back begins again', (t) => {
  const { requests, after, merged } = sampled(t)
  for (let times = 0; times < 3 * maxSamples; times += 1) after(sampleMs)
  assert.equal(after(0).samples.length, maxSamples)

  assert.equal(after(-60 * sampleMs).samples.length, 0)
  requests.add(30)
  after(sampleMs)

  assert.equal(merged().at(-1)?.requestsPerSecond, 3)
})

test('The samples of processes add up, and one that has not sampled yet does not lower the newest value', (t) => {
  const [one, other] = [sampled(t), sampled(t)]
  one.requests.add(10)
  other.requests.add(30)
  const before = other.after(sampleMs)
  const earlier = { ...before, samples: [...before.samples] }
  one.after(sampleMs)
  one.requests.add(10)
  const newer = one.after(sampleMs)

  const merged = mergedSamples([newer, earlier], one.at())

  assert.equal(merged.length, maxSamples)
  assert.equal(merged.at(-1)?.requestsPerSecond, 4)
})
