import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type EvaluatedRequest, Evaluations } from '../../src/authzen/evaluations.ts'
import { parseClaimPath } from '../../src/core/claims.ts'
import { systemClock } from '../../src/core/clock.ts'
import { TrustedProxies } from '../../src/http/forwarded.ts'
import { requestFacts } from '../../src/http/request-facts.ts'
import { Shares } from '../../src/limits/fair-queue.ts'
import { Metrics } from '../../src/observe/metrics.ts'
import { decide, startDecisionPoint } from '../support/decision-point.ts'

const trusted = new TrustedProxies([])
const facts = (method: string, url: string, host = 'a.example', remoteAddress = '192.0.2.7') =>
  requestFacts({ method, url, headers: { host }, socket: { remoteAddress } }, trusted, '')
const record = { iss: 'i', sub: 'jane', claims: { role: 'reader' }, tokens: {}, absolute_expires_at: 0 }
const permitted: EvaluatedRequest = {
  facts: facts('GET', '/orders?page=1'),
  upstream: { name: 'orders' },
  rule: { name: 'read' },
  record,
  caller: undefined,
}

/** Requests that differ from the permitted one in one way, which a policy may depend on. */
const others: Readonly<Record<string, EvaluatedRequest>> = {
  method: { ...permitted, facts: facts('DELETE', '/orders?page=1') },
  path: { ...permitted, facts: facts('GET', '/orders/7?page=1') },
  query: { ...permitted, facts: facts('GET', '/orders?page=2') },
  host: { ...permitted, facts: facts('GET', '/orders?page=1', 'b.example') },
  address: { ...permitted, facts: facts('GET', '/orders?page=1', 'a.example', '198.51.100.1') },
  upstream: { ...permitted, upstream: { name: 'stock' } },
  rule: { ...permitted, rule: { name: 'write' } },
  person: { ...permitted, record: { ...record, sub: 'samir' } },
  'provider of the person': { ...permitted, record: { ...record, iss: 'j' } },
  claims: { ...permitted, record: { ...record, claims: { role: 'former reader' } } },
  caller: { ...permitted, caller: 'access_token' },
}

test('A kept permission is for the same request only, whatever differs', async (t) => {
  const point = await startDecisionPoint(t)
  const claims = [{ name: 'role', path: parseClaimPath('role') }]
  const authorizeWith = { url: point.url, timeoutMs: 10_000, claims, authorization: undefined, ca: undefined }
  const elsewhere = { ...authorizeWith, url: `${point.url}?of=another` }
  const evaluations = new Evaluations([{ authorizeWith }, { authorizeWith: elsewhere }], {
    ...{ clock: systemClock, metrics: new Metrics() },
    placesOf: () => new Shares(100),
  })
  t.after(() => evaluations.close())
  const keep = { 'cache-control': 'max-age=300' }
  point.answer = decide({ decision: true }, keep)
  assert.equal((await evaluations.evaluate(permitted, authorizeWith)).kind, 'permitted')
  point.answer = decide({ decision: false }, keep)

  for (const [what, request] of Object.entries(others))
    assert.equal((await evaluations.evaluate(request, authorizeWith)).kind, 'denied', `another ${what}`)

  assert.equal((await evaluations.evaluate(permitted, elsewhere)).kind, 'denied', 'another policy decision point')
  assert.equal((await evaluations.evaluate(permitted, authorizeWith)).kind, 'permitted')
  assert.equal(point.asked.length, Object.keys(others).length + 2)
})
