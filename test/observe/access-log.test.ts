import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { SessionKey } from '../../src/core/names.ts'
import { accessLine, RequestRecord } from '../../src/observe/request-record.ts'

const time = '2026-01-02T03:04:05.678Z'

function recordWith(fields: Partial<RequestRecord>): RequestRecord {
  return Object.assign(new RequestRecord('GET', 'r-1', { ended: () => {} }), fields)
}

function read(fields: Partial<RequestRecord>): Record<string, unknown> {
  return JSON.parse(accessLine(recordWith(fields), time)) as Record<string, unknown>
}

test('A request is one line with all its fields', () => {
  const record = recordWith({
    host: 'orders.example.com',
    path: '/orders/7',
    client: '192.0.2.7',
    status: 502,
    bytes: 120,
    durationMs: 12.0346,
    upstream: 'orders',
    session: 'tag:hash' as SessionKey,
    code: 'ERR_UPSTREAM_UNREACHABLE',
    aborted: true,
    traceId: '0af7651916cd43dd8448eb211c80319c',
  })

  assert.equal(
    accessLine(record, time),
    '{"level":"info","time":"2026-01-02T03:04:05.678Z","msg":"request.ended","request":"r-1","method":"GET",' +
      '"host":"orders.example.com","path":"/orders/7","status":502,"bytes":120,"ms":12.035,"client":"192.0.2.7",' +
      '"upstream":"orders","session":"tag:hash","code":"ERR_UPSTREAM_UNREACHABLE","aborted":true,' +
      '"trace":"0af7651916cd43dd8448eb211c80319c"}\n',
  )
})

test('An unknown field is absent from the access log', () => {
  const names = Object.keys(read({}))

  assert.deepEqual(names, [
    'level',
    'time',
    'msg',
    'request',
    'method',
    'host',
    'path',
    'status',
    'bytes',
    'ms',
    'client',
  ])
})

for (const [ms, written] of [
  [0, '0.000'],
  [0.0004, '0.000'],
  [0.0996, '0.100'],
  [9.9996, '10.000'],
  [3_600_000.5, '3600000.500'],
] as const)
  test(`${ms} ms are written as ${written}`, () => {
    assert.match(accessLine(recordWith({ durationMs: ms }), time), new RegExp(`"ms":${written.replace('.', '\\.')},`))
  })

test('Any request is logged as one line of ASCII that is valid JSON', () => {
  const text = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.string({ minLength: 2000, maxLength: 5000 }))
  fc.assert(
    fc.property(text, text, (path, host) => {
      const line = accessLine(recordWith({ path, host }), time)

      assert.match(line, /^[ -~]+\n$/)
      const read = JSON.parse(line) as Record<string, unknown>
      assert.equal(read['msg'], 'request.ended')
      if (!path.includes(';') && path.length <= 1024) assert.equal(read['path'], path)
    }),
  )
})

test('A session in the parameters of a path is not logged', () => {
  assert.equal(read({ path: '/shop;jsessionid=SECRET/cart;a=1;b=2/7' })['path'], '/shop;…/cart;…/7')
})

test('A very long path is cut', () => {
  assert.equal(read({ path: `/${'a'.repeat(30_000)}` })['path'], `/${'a'.repeat(1023)}…`)
})
