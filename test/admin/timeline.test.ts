import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Timeline } from '../../src/admin/timeline.ts'
import type { SessionKey } from '../../src/core/names.ts'
import type { Audit } from '../../src/observe/audit.ts'

const iss = 'https://id.example.com'

function watched() {
  let now = 0
  const timeline = new Timeline()
  const recorded: string[] = []
  const audit = timeline.watching({ record: (event) => void recorded.push(event) } satisfies Audit, () => (now += 1))
  return { timeline, audit, recorded }
}

test('Many refused Logout Tokens do not displace accepted ones', () => {
  const { timeline, audit } = watched()
  audit.record('logout_token.obeyed', { iss, sub: undefined, sid: 's1', jti: 'j', ended: 2 })

  for (let times = 0; times < 1000; times += 1)
    audit.record('logout_token.refused', { code: 'ERR_LOGOUT_TOKEN_INVALID', reason: 'x'.repeat(10_000) })

  const { latest } = timeline
  assert.equal(latest.length, 31)
  assert.deepEqual(latest.at(-1), {
    at: 1,
    kind: 'logout_token',
    outcome: 'obeyed',
    iss,
    sid: 's1',
    sub: undefined,
    matched: 2,
  })
  assert.equal(latest[0]?.reason?.length, 201)
})

test('Each event reaches the audit log, and only ends of sessions are kept', () => {
  const { timeline, audit, recorded } = watched()
  const cause = { request: 'r1', client: '192.0.2.7' }

  audit.record('sign_in.failed', { code: 'ERR_SIGN_IN_EXPIRED', reason: 'too late' }, cause)
  audit.record('frontchannel_logout.refused', { code: 'ERR_LOGOUT_REQUEST', reason: 'no sid' }, cause)
  audit.record('logout_token.refused', { code: 'ERR_STORE_UNAVAILABLE', reason: 'away' }, cause)
  audit.record('logout_token.replayed', { iss, sub: 'jane', sid: undefined, jti: 'j' }, cause)

  assert.equal(recorded.length, 4)
  assert.deepEqual(
    timeline.latest.map(({ kind, outcome, request, sub }) => [kind, outcome, request, sub]),
    [
      ['logout_token', 'replayed', 'r1', 'jane'],
      ['logout_token', 'not_now', 'r1', undefined],
      ['frame', 'refused', 'r1', undefined],
    ],
  )
})

const key = (name: string) => `tag:${name}` as SessionKey

function end(name: string, by: string, sub = 'jane', sid = 's1') {
  return ['session.ended', { by, session: key(name), iss, sub, sid }] as const
}

test('A Logout Token and the sessions that it ended are one event, with the slowest confirmation of each process', () => {
  const { timeline, audit } = watched()
  const cause = { request: 'r1', client: '192.0.2.7' }
  const confirmed = (ms: number) => [{ process: 'a/1', ms }]
  timeline.reached([key('one')], { confirmed: confirmed(3), missing: 0, absent: [] })
  timeline.reached([key('two')], { confirmed: confirmed(9), missing: 1, absent: ['b/2'] })

  audit.record(...end('one', 'provider'), cause)
  audit.record(...end('two', 'provider'), cause)
  audit.record(...end('three', 'provider'), { ...cause, request: 'another' })
  audit.record('logout_token.obeyed', { iss, sid: 's1', sub: undefined, jti: 'j', ended: 2 }, cause)

  const [token, other] = timeline.latest
  assert.deepEqual(
    [token?.kind, token?.matched, token?.reach],
    ['logout_token', 2, { confirmed: confirmed(9), missing: 1, absent: ['b/2'] }],
  )
  assert.deepEqual([other?.kind, other?.by, other?.matched, other?.reach], ['end', 'provider', 1, undefined])
})

test('A signal of a poll, which has no request, is one event with the sessions of its person only', () => {
  const { timeline, audit } = watched()
  audit.record(...end('one', 'signal'))
  audit.record(...end('two', 'signal', 'samir', 's2'))

  audit.record('signal.obeyed', { iss, jti: 'j', event: 'session-revoked', action: 'end', sub: 'jane', matched: 1 })
  audit.record('signal.ignored', { iss, jti: 'k', event: 'verification', reason: 'not subscribed' })

  assert.deepEqual(
    timeline.latest.map(({ kind, outcome, signal, sub, reason }) => [kind, outcome, signal, sub, reason]),
    [
      ['signal', 'ignored', 'verification', undefined, 'not subscribed'],
      ['signal', 'obeyed', 'session-revoked: end', 'jane', undefined],
      ['end', 'obeyed', undefined, 'samir', undefined],
    ],
  )
})

test('Sign-outs of many people do not displace the orders of the provider, and memory is bounded', () => {
  const { timeline, audit } = watched()
  audit.record('logout_token.obeyed', { iss, sub: undefined, sid: 's1', jti: 'j', ended: 0 })
  for (let number = 0; number < 5_000; number += 1) {
    timeline.reached([key(`never recorded ${number}`)], { confirmed: [], missing: 0, absent: [] })
    audit.record(...end(`${number}`, 'person', `person ${number}`), { request: `r${number}`, client: '192.0.2.7' })
  }

  assert.equal(timeline.latest.length, 31)
  assert.equal(timeline.latest.at(-1)?.kind, 'logout_token')
})

test('A confirmation that arrives late changes the event', () => {
  const { timeline, audit } = watched()
  const reach = { confirmed: [] as { process: string; ms: number }[], missing: 1, absent: ['b/2'] }
  timeline.reached([key('one')], reach)
  audit.record(...end('one', 'administrator'), { request: 'r1', client: '192.0.2.7' })
  assert.equal(timeline.latest[0]?.reach?.missing, 1)

  Object.assign(reach, { confirmed: [{ process: 'b/2', ms: 4_000 }], missing: 0, absent: [] })

  assert.deepEqual(timeline.latest[0]?.reach, { confirmed: [{ process: 'b/2', ms: 4_000 }], missing: 0, absent: [] })
})
