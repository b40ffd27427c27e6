import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HistoryEvent } from '../../chaos/history.ts'
import { summaryOf } from '../../chaos/summary.ts'

test('a summary counts operations by outcome, and says how long people noticed a fault', () => {
  const times = { grace: 0, idleTimeout: 1e6, absoluteTimeout: 1e6 }
  const signIn = { type: 'sign-in', id: 's', person: 'ada', browser: 'ada-1', replica: 'a', signedIn: true } as const
  const who = {
    type: 'request',
    person: 'ada',
    browser: 'ada-1',
    session: 's',
    replica: 'a',
    application: 'orders',
  } as const
  const page = { ...who, kind: 'page', begin: 900, end: 1_000 } as const
  const away = { status: 503, code: 'ERR_STORE_UNAVAILABLE' }
  const history: HistoryEvent[] = [
    { type: 'run', at: 0, seed: 1, replicas: ['a', 'b'], persons: ['ada'], ...times },
    { ...signIn, status: 302, begin: 100, end: 200 },
    { type: 'fault', id: 'f1', kind: 'failover', part: 'store', begin: 500, end: 2_000 },
    { type: 'fault', id: 'f2', kind: 'partition', part: 'store', replicas: ['b'], begin: 2_500, end: 2_600 },
    { ...page, id: 'r1', status: 200, identity: { sub: 'ada', sid: '1' } },
    { ...page, id: 'r2', ...away },
    { ...page, id: 'r3', ...away, begin: 3_100, end: 3_250 },
    { ...page, id: 'r4', error: 'ECONNRESET' },
    { type: 'ending', id: 'e', by: 'sign-out', session: 's', begin: 4_000, end: 4_010, status: 302, confirmed: true },
  ]

  assert.equal(
    summaryOf(history),
    `| operation | all | served | ERR_STORE_UNAVAILABLE | no response |
| --- | --- | --- | --- | --- |
| page | 4 | 1 | 2 | 1 |
| sign-in | 1 | 1 | 0 | 0 |
| sign-out | 1 | 1 | 0 | 0 |

| fault | times | longest recovery |
| --- | --- | --- |
| failover | 1 | 1.3 s |
| partition | 1 | 0.0 s |`,
  )
})
