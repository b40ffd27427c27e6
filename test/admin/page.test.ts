import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AdminPages, partsOf } from '../../packages/admin-page/page.ts'
import type { MergedSample } from '../../src/admin/samples.ts'
import type { Overview } from '../../src/admin/view.ts'
import type { SessionKey } from '../../src/core/names.ts'
import type { Family } from '../../src/observe/metrics.ts'
import { innerMetrics } from '../../src/observe/process-metrics.ts'

const hostile = `"'><img src=x onerror=alert(1)></script><script>alert(2)</script>{{x}}`
const color = '#000000'
const scheme = { background: color, surface: color, text: color, accent: color, onAccent: color }
const pages = new AdminPages({ colours: { light: scheme, dark: scheme } })
const at = Date.UTC(2026, 0, 1)

const sample: MergedSample = {
  requestsPerSecond: 12,
  signInsPerMinute: 6,
  failedSignInsPerMinute: 1.5,
  endedPerMinute: 0,
  refusalsPerMinute: 3,
  refusals: { [hostile]: 2, ERR_B: 9 },
  durations: { p50: 0.004, p99: 1.25 },
  provider: undefined,
  store: { p50: 0.0005, p99: 0.04 },
}

function family(name: keyof typeof innerMetrics, values: readonly number[]): Family {
  const labels = [name === 'runs' ? 'work' : 'cache']
  const kind = { name: innerMetrics[name], help: '', kind: 'gauge', merge: 'sum' } as const
  return { ...kind, labels, bounds: [], cells: values.map((value) => ({ labels: [hostile], values: [value] })) }
}

/** A page on which every text that somebody else may choose is hostile. */
const overview: Overview = {
  at,
  version: hostile,
  host: hostile,
  processes: { responding: 1, silent: [7], countingSince: at },
  isShared: true,
  query: { sub: hostile, sid: hostile, text: hostile, sort: 'began', page: 1 },
  sessions: {
    found: [
      {
        ...{ key: hostile as SessionKey, sub: hostile, person: hostile, provider: hostile, sid: hostile },
        ...{ browser: hostile, address: hostile, bound_at: at, origin: hostile, last_used_at: at, created_at: at },
        ...{ absolute_expires_at: at, order: hostile },
      },
    ],
    ...{ page: 1, pages: 2, listed: 1, isCut: true, count: 100_000, read: 412 },
  },
  providers: [
    {
      ...{ name: 'main', issuer: hostile, algorithm: hostile, foundBy: 1, readAt: at, faults: [hostile] },
      keys: [{ kid: hostile, kty: hostile, alg: hostile, use: hostile, since: at, knownBy: 1 }],
      keysReadAt: at,
    },
  ],
  upstreams: [
    {
      ...{ name: hostile, url: hostile, connection: hostile, requests: 1, serverErrors: 1, failures: 1, waiting: 0 },
      lastFailure: { at, code: hostile, request: hostile },
      targets: [
        { name: hostile, backup: true, states: [[hostile, 1]], reasons: [hostile], open: 1 },
        { name: 'http://10.0.0.2:80', backup: false, states: [['up', 1]], reasons: [], open: 3 },
      ],
    },
  ],
  timeline: [
    {
      ...{ at, kind: 'logout_token', outcome: 'obeyed', sid: hostile, sub: hostile, matched: 2, request: hostile },
      reach: { confirmed: [{ process: hostile, ms: 3.21 }], missing: 1, absent: [hostile] },
    },
    { at, kind: 'signal', outcome: 'ignored', signal: hostile, reason: hostile },
    { at, kind: 'frame', outcome: 'refused', reason: hostile },
    { at, kind: 'end', outcome: 'obeyed', by: hostile },
  ],
  samples: [undefined, { ...sample, requestsPerSecond: 40 }, undefined, sample],
  sessionCounts: [undefined, 40, 12, undefined],
  inner: [family('entries', [7]), family('used', [0.25]), family('evicted', [3]), family('runs', [12])],
}

test('No text that others choose becomes markup, neither in the page nor in an update', () => {
  const { body } = pages.overview(overview)
  const [before = '', , after = ''] = body.split(/<script>\n|\n<\/script>/)

  for (const html of [before, after, ...partsOf(overview).map((part) => part.html)]) {
    assert.equal(/<img|<script|<\/script/.exec(html), null)
    // Without the values of attributes, which are quoted.
    assert.equal(/<[^>]* on\w+=/.exec(html.replaceAll(/"[^"]*"/g, '""')), null)
  }
  assert.match(body, /&lt;img src=x onerror=alert\(1\)&gt;/)
})

test('A search that was cut says how much it has read, and what finds more', () => {
  const { body } = pages.overview(overview)

  assert.match(
    body,
    /1 found\. The search was cut after 412 of about 100000 sessions.*Others may match\. Search for the whole/,
  )
})

test('The page shows how full the caches are, and what works in the background', () => {
  const { body } = pages.overview(overview)
  const cellsOf = (id: string) => {
    const [, table = ''] = body.split(`aria-labelledby="${id}"`)
    return [...(table.split('</table>')[0] ?? '').matchAll(/<td[^>]*>([^<]*)/g)].map(([, text]) => text)
  }

  assert.deepEqual(cellsOf('caches'), ['7', '25 %', '3'])
  assert.deepEqual(cellsOf('work'), ['no'])
})

test('The timeline says how long an end took on each process, and which has not confirmed', () => {
  const { body } = pages.overview(overview)

  assert.match(body, /1 process has not confirmed.*1 process in 3\.2 ms.*<strong>not confirmed<\/strong>/)
})

test('The timeline says what an event names, or why it has no name', () => {
  const { body } = pages.overview({
    ...overview,
    timeline: [
      { at, kind: 'signal', outcome: 'obeyed', signal: 'account-disabled: end', matched: 1 },
      { at, kind: 'signal', outcome: 'ignored', signal: 'verification', reason: 'it is about the stream' },
      { at, kind: 'signal', outcome: 'refused', reason: 'signature' },
    ],
  })

  // The audit event, and so the page, does not have the address.
  assert.deepEqual(
    [...body.matchAll(/data-head="Names"[^>]*>([^<]*)/g)].map(([, names]) => names),
    ['an e-mail address', 'not read', 'not verified'],
  )
})

test('Each chart has a title, a description, a text with its values, and the values that the script draws', () => {
  const { body } = pages.overview(overview)
  const drawn = [...body.matchAll(/ data-chart="([^"]+)"/g)].map(
    ([, text = '']) => JSON.parse(text.replaceAll('&quot;', '"')) as object,
  )

  assert.equal(
    body.match(/<div class="chart" role="img" aria-label="[^"]+, the last 15 minutes, in [^"]+"/g)?.length,
    8,
  )
  assert.match(body, /Requests<\/h3>requests: latest 12, highest 40 requests\/s</)
  assert.match(body, /Response time<\/h3>p50: latest 4, highest 4 ms<br>p99: latest 1250, highest 1250 ms</)
  assert.match(body, /of the provider<\/h3>p50: no values<br>p99: no values</)
  assert.match(body, /sessions: latest 12, highest 40 sessions, of all replicas; counted only while a page/)
  assert.match(body, /<code>ERR_<wbr>B<\/code> 18<\/li>/)
  const times = [-30, -20, -10, 0].map((seconds) => at / 1000 + seconds)
  assert.deepEqual(drawn.slice(0, 2), [
    { unit: 'requests/s', names: ['requests'], data: [times, [null, 40, null, 12]] },
    { unit: 'ms', names: ['p50', 'p99'], data: [times, [null, 4, null, 4], [null, 1250, null, 1250]] },
  ])
})

test('The page has landmarks, a skip link, and unique ids', () => {
  const { body } = pages.overview({ ...overview, query: { sub: '', sid: '', text: '', sort: 'began', page: 1 } })

  assert.match(body, /<a class="skip" href="#main">/)
  for (const landmark of [
    '<header>',
    '<nav aria-label="Sections">',
    '<main id="main"',
    '<form class="search" role="search"',
  ])
    assert.ok(body.includes(landmark), landmark)
  const ids = [...body.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)
  assert.deepEqual(ids.toSorted(), [...new Set(ids)].toSorted())
})
