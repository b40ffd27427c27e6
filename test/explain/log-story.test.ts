import assert from 'node:assert/strict'
import { test } from 'node:test'
import { adviceOn, LogStory } from '../../src/explain/log-story.ts'

function storyOf(request: string, lines: readonly object[], prefix = '') {
  const story = new LogStory(request)
  for (const line of lines) story.add(`${prefix}${JSON.stringify(line)}`)
  return story.story()
}

const ended = {
  level: 'info',
  time: '2026-01-02T03:04:05.679Z',
  msg: 'request.ended',
  request: 'one',
  method: 'GET',
  host: 'orders.example.com',
  path: '/feed',
  status: 200,
  bytes: 7,
  ms: 12.5,
  client: '192.0.2.7',
  upstream: 'orders',
  session: 'k',
}

test('The story of a successful request has one sentence and no advice', () => {
  const story = storyOf('one', [ended])

  assert.deepEqual(story?.told, [
    '2026-01-02T03:04:05.679Z  GET orders.example.com/feed, with the session k, from 192.0.2.7: status 200 by orders after 12.5 ms',
  ])
  assert.equal(story?.advice, undefined)
})

test('The story of a stream that ended with its session says what ended the session', () => {
  const ending = {
    time: '2026-01-02T03:04:05.600Z',
    msg: 'session.ended',
    audit: true,
    by: 'logout_token',
    session: 'k',
  }
  const other = { ...ending, session: 'other', by: 'administrator' }

  const story = storyOf('one', [ending, other, { ...ended, code: 'session_ended', aborted: true }])

  assert.match(story?.told[0] ?? '', /status 200 by orders after 12\.5 ms, but the client did not receive all of it$/)
  assert.match(story?.told[1] ?? '', /the session was ended \(by: logout_token\)/)
  assert.match(story?.advice?.means ?? '', /the session, or the key, ended during/)
})

test('The story of a stream that ended with its key says what ended the key', () => {
  const ending = { time: 't', msg: 'key.ended', audit: true, by: 'person', session: 'k' }

  const story = storyOf('one', [ending, { ...ended, caller: 'key', code: 'session_ended', aborted: true }])

  assert.match(story?.told[0] ?? '', /, with the key k, from /)
  assert.match(story?.told[1] ?? '', /the key was ended \(by: person\)/)
})

test('The story says that the client closed the connection', () => {
  assert.match(
    storyOf('one', [{ ...ended, status: 499 }])?.told[0] ?? '',
    /the client closed the connection after 12\.5 ms/,
  )
})

for (const [msg, fields, told] of [
  [
    'upstream.failed',
    { upstream: 'orders', url: 'http://127.0.0.1:3000', code: 'ERR_UPSTREAM_UNREACHABLE', reason: 'refused' },
    /the upstream orders failed at http:\/\/127\.0\.0\.1:3000 with ERR_UPSTREAM_UNREACHABLE: refused/,
  ],
  [
    'sign_in.failed',
    { code: 'ERR_SIGN_IN_EXPIRED', reason: 'no attempt' },
    /the sign-in failed with ERR_SIGN_IN_EXPIRED: no attempt/,
  ],
  [
    'upstream.rejected_headers',
    { upstream: 'orders', reason: 'it responded with 431', hint: 'Lower max_bytes.' },
    /headers of the person may be too long for orders: it responded with 431\. Lower max_bytes\.$/,
  ],
  ['something.new', { reason: 'why' }, /something\.new: why/],
] as const)
  test(`A log line becomes a sentence: ${msg}`, () => {
    const story = storyOf('one', [{ time: 't', msg, request: 'one', ...fields }])

    assert.match(story?.told[0] ?? '', told)
    if ('code' in fields) assert.deepEqual(story?.advice, adviceOn(fields.code))
  })

test('Prefixes of a container runtime and lines about other requests are ignored', () => {
  const lines = [{ ...ended, request: 'onetwo' }, { ...ended, path: '/one', request: 'two' }, ended]

  const story = storyOf('one', lines, '[gatehouse-7d4-x] 2026-01-02T03:04:05Z stdout F ')

  assert.equal(story?.lines.length, 1)
})

test('Lines that are not JSON are ignored, and without a line there is no story', () => {
  const story = new LogStory('one')
  for (const line of ['', '{', 'one', '{"one":', '[1]', 'null', '{"request":"two"}']) story.add(line)

  assert.equal(story.story(), undefined)
})

test('An unknown code has no advice', () => {
  assert.equal(adviceOn('constructor'), undefined)
})

for (const reason of ['groups: the claim is absent', 'the claim for the required header X-Email is missing'])
  test(`The advice distinguishes an absent claim from a missing group: ${reason}`, () => {
    const denied = { msg: 'access.denied', request: 'one', code: 'ERR_CLAIM_ABSENT', reason }

    const { advice } = storyOf('one', [denied]) ?? {}

    assert.match(advice?.means ?? '', /lacks a claim that the rule requires/)
    assert.match(advice?.todo ?? '', /scopes of the provider.*mapper.*id_token_claims of the provider/)
  })

test('The advice for a requirement that is not met is to change the claims of the person or the rule', () => {
  const denied = { msg: 'access.denied', request: 'one', code: 'ERR_FORBIDDEN', reason: 'groups: holds none of admins' }

  assert.match(storyOf('one', [denied])?.advice?.todo ?? '', /change the groups or other claims of the person/)
})
