import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseTraceParent } from '../../src/observe/trace-context.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const parentId = 'b7ad6b7169203331'

for (const [value, isSampled] of [
  [`00-${traceId}-${parentId}-01`, true],
  [`00-${traceId}-${parentId}-00`, false],
  [`00-${traceId}-${parentId}-03`, true],
  [`00-${traceId}-${parentId}-02`, false],
  [`cc-${traceId}-${parentId}-01`, true],
  [`cc-${traceId}-${parentId}-01-what-comes-later`, true],
  [` 00-${traceId}-${parentId}-01 `, true],
] as const)
  test(`A valid traceparent is parsed: "${value}"`, () => {
    assert.deepEqual(parseTraceParent(value), { traceId, parentId, isSampled })
  })

for (const value of [
  undefined,
  '',
  ['a'],
  `00-${traceId}-${parentId}`,
  `00-${traceId}-${parentId}-01-more`,
  `cc-${traceId}-${parentId}-01.more`,
  `ff-${traceId}-${parentId}-01`,
  `00-${'0'.repeat(32)}-${parentId}-01`,
  `00-${traceId}-${'0'.repeat(16)}-01`,
  `00-${traceId.toUpperCase()}-${parentId}-01`,
  `00-${traceId}-${parentId}-1`,
  `00-${traceId}-${parentId}-01, 00-${traceId}-${parentId}-01`,
  `00_${traceId}_${parentId}_01`,
])
  test(`An invalid traceparent is ignored: ${JSON.stringify(value)}`, () => {
    assert.equal(parseTraceParent(value), undefined)
  })
