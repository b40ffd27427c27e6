import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HistoryEvent } from '../../chaos/history.ts'
import { exitCodes, judge } from '../../chaos/judge.ts'
import type { LogLine } from '../../chaos/logs.ts'
import { modelHistory } from '../../chaos/model.ts'
import { causesOf, reportOf } from '../../chaos/report.ts'

const workers = ['a', 'b', 'c', 'd'].flatMap((replica) => [`${replica}.1`, `${replica}.2`])

/** A history of the model in which also happens what the model does not do, and its logs. */
function wholeRun() {
  const events = modelHistory(11)
  const logs = new Map<string, LogLine>()
  const pages = events.filter(
    (event) => event.type === 'request' && event.kind === 'page' && event.identity && event.begin > 1_000,
  )
  for (const [n, worker] of [...workers, ...workers, ...workers, ...workers, ...workers].entries()) {
    const page = pages[n]
    if (page?.type !== 'request') throw new Error('the model has too few pages')
    events[events.indexOf(page)] = { ...page, copy: true }
    logs.set(page.id, { file: `${worker}.log`, line: n + 1, worker })
  }
  const forms = events.filter((event) => event.type === 'request' && event.kind === 'form').slice(0, 5)
  for (const form of forms) events[events.indexOf(form)] = { ...form, kept: true } as HistoryEvent
  for (const page of pages.slice(100, 110)) {
    const { identity: _, echo: __, ...request } = page as Extract<HistoryEvent, { type: 'request' }>
    events[events.indexOf(page)] = { ...request, status: 403, code: 'ERR_FORBIDDEN', denied: true }
    events.splice(
      events.findIndex((event) => event.type === 'receipt' && event.request === request.id),
      1,
    )
    events.splice(1, 0, { type: 'logout-call', at: 1, application: 'orders', cookie: request.id })
  }
  const proof = events.find((event) => event.type === 'proof' && event.proved)
  const [page] = pages
  if (proof?.type !== 'proof' || page?.type !== 'request') throw new Error('the model has no proof')
  for (let n = 0; n < 5; n += 1) {
    const { identity: _, echo: __, ...request } = page
    const about = { id: `keyless-${n}`, session: proof.session, browser: proof.browser, person: proof.person }
    const span = { begin: proof.end + 31_000 + n, end: proof.end + 31_002 + n }
    const refused = { status: 401, code: 'ERR_UNAUTHENTICATED', unproved: true } as const
    events.splice(1, 0, { ...request, ...about, ...span, ...refused })
  }
  const order = events.find((event) => event.type === 'ending' && event.by === 'logout-token' && event.confirmed)
  if (order !== undefined) events.splice(1, 0, order)
  return { events, logs }
}

function withoutEnd(events: readonly HistoryEvent[]): HistoryEvent[] {
  const [at] = [events.findIndex(({ type }) => type === 'end')]
  return [...events.slice(0, at), { type: 'broken', at: 100_000, reason: 'not within 120000 ms: a is ready' }]
}

test('a run in which enough happened, and nothing was found, is held', () => {
  const { events, logs } = wholeRun()
  const { verdict, doubts, shares } = judge(events, logs)

  assert.deepEqual(doubts, [])
  assert.equal(verdict, 'held')
  assert.ok(shares.every(({ judged, tried }) => judged >= 0.6 * tried))
})

test('a run that broke off could not be judged', () => {
  const { events, logs } = wholeRun()
  const { verdict, doubts } = judge(withoutEnd(events), logs)

  assert.equal(verdict, 'could not judge')
  assert.deepEqual(doubts, ['the run broke off (not within 120000 ms: a is ready)'])
})

test('what is found before a run breaks off is found', () => {
  const { events, logs } = wholeRun()
  const at = events.findIndex((event) => event.type === 'request' && event.identity !== undefined)
  events[at] = { ...events[at], identity: { sub: 'mallory', sid: 'x' } } as HistoryEvent

  assert.equal(judge(withoutEnd(events), logs).verdict, 'found')
})

test('a run that broke off before its first event could not be judged', () => {
  assert.equal(judge([{ type: 'broken', at: 1, reason: 'no Redis' }], new Map()).verdict, 'could not judge')
})

test('a run on a machine that was too busy for slow responses to be judged says so', () => {
  const { events, logs } = wholeRun()
  for (let begin = 0; begin < 100_000; begin += 250)
    events.push({ type: 'stall', of: 'world', begin, end: begin + 250, ms: 200 })
  const { verdict, doubts } = judge(events, logs)

  assert.equal(verdict, 'could not judge')
  assert.match(doubts.join(), /slow response: \d+ of \d+/)
})

test('a run in which no copy of a cookie reached a worker says which one', () => {
  const { events, logs } = wholeRun()
  const isOfWorker = (event: HistoryEvent) => event.type === 'request' && logs.get(event.id)?.worker === 'c.2'
  const { verdict, doubts } = judge(
    events.map((event) => (isOfWorker(event) ? ({ ...event, copy: undefined } as unknown as HistoryEvent) : event)),
    logs,
  )

  assert.equal(verdict, 'could not judge')
  assert.match(doubts.join(), /copies of cookies tried at worker c\.2: 0/)
})

test('each verdict has an exit code of its own, and none is that of a wrong option', () => {
  const codes = Object.values(exitCodes)
  assert.equal(new Set([...codes, 2]).size, codes.length + 1)
})

test('findings of one cause are counted once, with the wall clock, the log and the person', () => {
  const { events, logs } = wholeRun()
  const run = events.findIndex(({ type }) => type === 'run')
  events[run] = { ...events[run], wallClock: Date.UTC(2026, 0, 1) } as HistoryEvent
  const served = events.filter((event) => event.type === 'request' && logs.has(event.id)).slice(0, 4)
  for (const event of served)
    events[events.indexOf(event)] = { ...event, identity: { sub: 'mallory', sid: 'x' } } as HistoryEvent
  const judgement = judge(events, logs)

  const text = reportOf(judgement, events, logs)
  assert.ok(causesOf(judgement.findings).length < judgement.findings.length)
  assert.match(text, /2026-01-01T00:0\d:\d\d\.\d{3}Z/)
  assert.match(text, /→ [abcd]\.[12]\.log:\d+/)
  assert.match(text, /Around it, of the same person/)
})
