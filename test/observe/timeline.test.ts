import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Audit } from '../../src/observe/audit.ts'
import { Timeline } from '../../src/observe/timeline.ts'

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
