import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SessionKey } from '../../src/core/names.ts'
import type { TokenSet } from '../../src/core/token-set.ts'
import type { StoredSession } from '../../src/session/record/record.ts'
import { whatIsDue } from '../../src/tokens/upkeep.ts'

const minute = 60_000
const hour = 60 * minute

/** A session that began at 0; `key` brings its share of chance along. */
function session(tokens: Partial<TokenSet>, userinfo_read_at = 0, key = '0'.repeat(24) + ':00'): StoredSession {
  const record = {
    iss: 'https://id.example.com',
    sub: 'jane',
    created_at: 0,
    absolute_expires_at: 100 * hour,
    tokens: { access_token: 'at', obtained_at: 0, id_token: 'it', ...tokens },
    claims: {},
    userinfo_read_at,
  }
  return { key: key as SessionKey, audience: '', version: 1, bytes: 0, record }
}

const anHour = { refresh_token: 'rt', access_token_expires_at: hour }
const aMinute = { refresh_token: 'rt', access_token_expires_at: minute }
const noRefresh = { access_token_expires_at: hour }

for (const [what, tokens, now, due] of [
  ['that is new', anHour, 0, 'nothing'],
  ['that is good for longer than refresh_before', anHour, hour - 5 * minute - 1, 'nothing'],
  ['that is good for as long as refresh_before', anHour, hour - 5 * minute, 'refresh_soon'],
  ['in its last moment', anHour, hour - 1, 'refresh_soon'],
  ['that has just expired', anHour, hour, 'refresh_now'],
  ['that expired long ago', anHour, 9 * hour, 'refresh_now'],
  ['that lives for less than refresh_before, at first', aMinute, 45_000 - 1, 'nothing'],
  ['that lives for less than refresh_before, in its last quarter', aMinute, 45_000, 'refresh_soon'],
  ['that nobody said how long it lives', { refresh_token: 'rt' }, 90 * hour, 'nothing'],
  ['that cannot be refreshed, expired', noRefresh, 2 * hour, 'nothing'],
] as const)
  test(`an access token ${what}: ${due}`, () => {
    assert.equal(whatIsDue(session(tokens), { refreshBeforeMs: 5 * minute, pollUserinfoMs: undefined }, now), due)
  })

for (const [what, tokens, readAt, now, due] of [
  ['a moment ago', anHour, 0, minute - 1, 'nothing'],
  ['as long ago as poll_userinfo says', anHour, 0, minute, 'userinfo'],
  ['long ago, but a refresh, which reads it too, is due', anHour, 0, hour - 1, 'refresh_soon'],
  ['long ago, and cannot be read with an expired token', noRefresh, 0, hour, 'nothing'],
  ['long ago, by a token that cannot be refreshed', noRefresh, 0, minute, 'userinfo'],
  ['in the future: a clock was set back', anHour, 9 * minute, minute, 'nothing'],
] as const)
  test(`userinfo was read ${what}: ${due}`, () => {
    const config = { refreshBeforeMs: 5 * minute, pollUserinfoMs: minute }
    assert.equal(whatIsDue(session(tokens, readAt), config, now), due)
  })

test('sessions that began together are not polled together, and none later than poll_userinfo says', () => {
  const config = { refreshBeforeMs: 0, pollUserinfoMs: minute }
  const keys = Array.from({ length: 16 }, (_, index) => `${'0'.repeat(24)}:${String.fromCharCode(64 + index)}0`)
  const dueAt = (now: number) => keys.filter((key) => whatIsDue(session({}, 0, key), config, now) === 'userinfo').length

  assert.equal(dueAt(0.9 * minute - 1), 0)
  assert.ok(dueAt(0.95 * minute) > 0 && dueAt(0.95 * minute) < keys.length)
  assert.equal(dueAt(minute), keys.length)
})

test('A request waits for the claim of an API that was read more than an hour ago', () => {
  const config = { refreshBeforeMs: 0, pollUserinfoMs: minute }
  const groups = { id: 'groups', name: 'groups', isMerged: false, everyMs: undefined, sources: [] }
  const { record, ...stored } = session({ access_token_expires_at: 9 * hour })
  const read = { ...stored, record: { ...record, api_claims: { groups: { read_at: 0 } } } }

  assert.equal(whatIsDue(read, config, hour - 1, [groups]), 'userinfo')
  assert.equal(whatIsDue(read, config, hour + 1, [groups]), 'userinfo_now')
})
