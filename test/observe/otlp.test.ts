import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { LogFields } from '../../src/observe/log.ts'
import { Metrics } from '../../src/observe/metrics.ts'
import { OtlpExporter } from '../../src/observe/otlp.ts'
import type { Span } from '../../src/observe/tracing.ts'
import { startCollector } from '../support/collector.ts'
import { replacePauses } from '../support/pauses.ts'
import { until } from '../support/until.ts'

const span: Span = {
  traceId: '0af7651916cd43dd8448eb211c80319c',
  spanId: 'b7ad6b7169203331',
  name: 'GET',
  kind: 2,
  startTimeUnixNano: '1700000000000000000',
  endTimeUnixNano: '1700000000000000001',
  attributes: [],
}

async function exporting(t: TestContext) {
  replacePauses(t, { sendSpansMs: 50, retrySpansMs: 200 })
  const collector = await startCollector(t)
  const metrics = new Metrics()
  const told: [message: string, fields: LogFields | undefined][] = []
  const tell = (message: string, fields?: LogFields) => void told.push([message, fields])
  const log = { debug: tell, info: tell, warn: tell, error: tell, announce: tell }
  const otlp = new URL(`${collector.url}/v1/traces`)
  const settings = { otlp, serviceName: 'gatehouse', resource: {}, headers: {}, ca: undefined }
  const exporter = new OtlpExporter(settings, { version: '1.2.3', log, metrics })
  t.after(() => exporter.close(0))
  const counted = (which: 'exported' | 'dropped') =>
    metrics.collect().find(({ name }) => name === `gatehouse_spans_${which}_total`)?.cells[0]?.values[0]
  return { collector, exporter, told, counted }
}

const batch = 512
const mostWaiting = 4096

test('Spans that cannot be sent are dropped and counted beyond a limit', async (t) => {
  const { collector, exporter, counted } = await exporting(t)
  collector.respondWith(0)
  for (let times = 0; times < batch; times += 1) exporter.add(span)
  await until('the first batch is under way', () => collector.asked.length === 1)

  for (let times = 0; times < mostWaiting + 100; times += 1) exporter.add(span)

  assert.equal(counted('dropped'), 100)
  await exporter.close(0)
  assert.equal(counted('dropped'), batch + mostWaiting + 100)
  assert.equal(counted('exported'), 0)
})

test('Many spans are sent in several batches, each span once', async (t) => {
  const { collector, exporter, counted } = await exporting(t)

  for (let times = 0; times < 1300; times += 1) exporter.add(span)

  await exporter.close(5_000)
  assert.deepEqual(
    collector.requests.map(({ count }) => count),
    [batch, batch, 1300 - 2 * batch],
  )
  assert.deepEqual([counted('exported'), counted('dropped')], [1300, 0])
})

test('The exporter waits as long as Retry-After asks', async (t) => {
  const { collector, exporter, counted } = await exporting(t)
  collector.respondWith(429, { headers: { 'retry-after': '1' } })
  exporter.add(span)
  await until('it has asked for patience', () => collector.asked.length === 1)
  collector.respondWith(200)

  await until('it has taken the span', () => counted('exported') === 1)
  const [first = 0, second = 0] = collector.asked
  assert.ok(second - first > 990, String(second - first))
})

test('Refused spans of a batch are counted, and the message of the collector is not logged', async (t) => {
  const { collector, exporter, told, counted } = await exporting(t)
  collector.respondWith(200, { rejectedSpans: 3 })

  for (let times = 0; times < 10; times += 1) exporter.add(span)

  await exporter.close(5_000)
  assert.deepEqual([counted('exported'), counted('dropped')], [7, 3])
  assert.deepEqual(told, [['tracing.not_exported', { collector: collector.url, reason: 'refused 3 of 10 spans' }]])
})

test('A stop during a pause tries the batch a last time', async (t) => {
  const { collector, exporter, counted } = await exporting(t)
  collector.respondWith(503, { headers: { 'retry-after': '30' } })
  exporter.add(span)
  await until('it was asked', () => collector.asked.length === 1)
  collector.respondWith(200)

  await exporter.close(5_000)

  assert.equal(counted('exported'), 1)
  assert.ok((collector.asked[1] ?? Infinity) - (collector.asked[0] ?? 0) < 5_000)
})

test('A stop during a request tries the refused batch a last time', async (t) => {
  const { collector, exporter, counted } = await exporting(t)
  let refuse = () => {}
  collector.respondWith(503, { after: new Promise<void>((resolve) => (refuse = resolve)) })
  exporter.add(span)
  await until('it was asked', () => collector.asked.length === 1)
  collector.respondWith(200)

  const closed = exporter.close(5_000)
  refuse()
  await closed

  assert.deepEqual([counted('exported'), counted('dropped')], [1, 0])
})

test('Nothing is sent after a stop', async (t) => {
  const { collector, exporter, counted } = await exporting(t)
  await exporter.close(1_000)

  for (let times = 0; times < batch; times += 1) exporter.add(span)

  assert.equal(counted('dropped'), batch)
  assert.deepEqual(collector.asked, [])
})
