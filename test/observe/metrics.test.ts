import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RequestMetrics } from '../../src/observe/event-metrics.ts'
import { exposition, merged } from '../../src/observe/exposition.ts'
import { type Family, Metrics } from '../../src/observe/metrics.ts'
import { RequestRecord } from '../../src/observe/request-record.ts'
import { parseMetrics } from '../support/metrics.ts'

test('Counters, gauges and histograms are written in the Prometheus format', () => {
  const metrics = new Metrics()
  const doors = metrics.counter({
    name: 'doors_total',
    help: 'Doors,\nby "colour" and \\.',
    labels: ['colour', 'side'],
  })
  doors.of('red', 'left').add()
  doors.of('red', 'left').add(2)
  doors.of('a"b\\c\nd', 'right').add()
  const waits = metrics.histogram({ name: 'wait_seconds', help: 'Waits.', labels: ['door'], bounds: [0.1, 1] })
  for (const wait of [0.05, 0.1, 0.5, 7]) waits.of('red').observe(wait)
  metrics.counter({ name: 'never_total', help: 'Never.' })
  metrics.gauge({ name: 'open', help: 'Open.', merge: 'sum', read: () => 3 })

  assert.equal(
    exposition(metrics.collect()),
    `# HELP doors_total Doors,\\nby "colour" and \\\\.
# TYPE doors_total counter
doors_total{colour="red",side="left"} 3
doors_total{colour="a\\"b\\\\c\\nd",side="right"} 1
# HELP wait_seconds Waits.
# TYPE wait_seconds histogram
wait_seconds_bucket{door="red",le="0.1"} 2
wait_seconds_bucket{door="red",le="1"} 3
wait_seconds_bucket{door="red",le="+Inf"} 4
wait_seconds_sum{door="red"} 7.65
wait_seconds_count{door="red"} 4
# HELP never_total Never.
# TYPE never_total counter
never_total 0
# HELP open Open.
# TYPE open gauge
open 3
`,
  )
})

test('The metrics of several processes are merged into one page', () => {
  const processWith = (requests: number, door: string, memory: number): readonly Family[] => {
    const metrics = new Metrics()
    metrics
      .counter({ name: 'requests_total', help: 'r', labels: ['door'] })
      .of(door)
      .add(requests)
    metrics.counter({ name: 'requests_of_all_total', help: 'r' }).of().add(requests)
    metrics
      .histogram({ name: 'wait_seconds', help: 'w', bounds: [1] })
      .of()
      .observe(requests)
    metrics.gauge({ name: 'memory', help: 'm', merge: 'sum', read: () => memory })
    metrics.gauge({ name: 'worst', help: 'w', merge: 'max', read: () => memory })
    metrics.gauge({ name: 'all_well', help: 'a', merge: 'min', read: () => memory })
    return metrics.collect()
  }

  const page = parseMetrics(
    exposition(merged([processWith(1, 'red', 10), processWith(4, 'red', 20), processWith(2, 'blue', 30)])),
  )

  assert.equal(page.value('requests_total{door="red"}'), 5)
  assert.equal(page.value('requests_total{door="blue"}'), 2)
  assert.equal(page.value('requests_of_all_total'), 7)
  assert.equal(page.value('wait_seconds_bucket{le="1"}'), 1)
  assert.equal(page.value('wait_seconds_count'), 3)
  assert.equal(page.value('wait_seconds_sum'), 7)
  assert.deepEqual([page.value('memory'), page.value('worst'), page.value('all_well')], [60, 30, 10])
})

test('No text of a client becomes a label', () => {
  const metrics = new Metrics()
  const sink = new RequestMetrics(metrics)
  for (let each = 0; each < 1000; each += 1) {
    const record = new RequestRecord(`M${each}`, `r-${each}`, sink)
    Object.assign(record, {
      host: `h${each}.example.com`,
      path: `/p${each}`,
      client: `10.0.0.${each}`,
      upstream: 'orders',
    })
    record.end(200 + (each % 5) * 100, true)
  }

  const page = parseMetrics(exposition(metrics.collect()))

  assert.deepEqual(
    [...page.samples('gatehouse_requests_total').keys()],
    [
      'gatehouse_requests_total{upstream="orders",method="other",status="2xx"}',
      'gatehouse_requests_total{upstream="orders",method="other",status="3xx"}',
      'gatehouse_requests_total{upstream="orders",method="other",status="4xx"}',
      'gatehouse_requests_total{upstream="orders",method="other",status="5xx"}',
      'gatehouse_requests_total{upstream="orders",method="other",status="6xx"}',
    ],
  )
  assert.equal(page.value('gatehouse_active_requests'), 0)
})
