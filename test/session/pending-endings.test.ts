import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SidTag, SessionKey } from '../../src/core/names.ts'
import type { LogFields } from '../../src/observe/log.ts'
import { PendingEndings, type PendingEnding } from '../../src/session/live/pending-endings.ts'
import { replacePauses } from '../support/pauses.ts'
import { until } from '../support/until.ts'

function pendingEndings() {
  const errors: string[] = []
  const nothing = () => {}
  const log = {
    ...{ debug: nothing, info: nothing, warn: nothing, announce: nothing },
    error: (message: string, _fields?: LogFields) => void errors.push(message),
  }
  return { pending: new PendingEndings(log), errors }
}

const unavailable = () => Promise.reject(new Error('unavailable'))
const ofSid = (sid: string, repeat: PendingEnding['repeat'] = unavailable): PendingEnding => ({
  ...{ name: `token ${sid}`, scope: sid as SidTag, createdUntil: 1_000, isTrusted: true, repeat },
})
const ofCookie = (key: string): PendingEnding => ({
  ...{ name: key, scope: key as SessionKey, createdUntil: 1_000, isTrusted: false, repeat: unavailable },
})

test('a pending logout does not cover sessions that were created after it', (t) => {
  const { pending } = pendingEndings()
  t.after(() => pending.clear())
  pending.add(ofSid('one'))

  assert.equal(pending.covers(1_000, 'other' as SidTag, 'one' as SidTag), true)
  assert.equal(pending.covers(1_001, 'one' as SidTag), false)
  pending.complete('token one')
  assert.equal(pending.isEmpty, true)
})

test('invented cookies displace no pending Logout Token, and their number is limited', (t) => {
  const { pending, errors } = pendingEndings()
  t.after(() => pending.clear())
  pending.add(ofSid('one'))

  for (let n = 0; n < 20_000; n++) pending.add(ofCookie(`key ${n}`))

  assert.equal(pending.covers(0, 'one' as SidTag), true)
  assert.equal(pending.covers(0, 'key 18999' as SessionKey), false)
  assert.equal(pending.covers(0, 'key 19000' as SessionKey), true)
  assert.deepEqual(errors, ['session.endings_forgotten'], 'logged once')
})

test('pending logouts that fail every time do not delay the others', async (t) => {
  replacePauses(t, { repeatEndingsMs: 50 })
  const { pending } = pendingEndings()
  t.after(() => pending.clear())
  let runs = 0
  for (let n = 0; n < 30; n++) pending.add(ofSid(`lost ${n}`))
  pending.add(ofSid('one', async () => void (runs += 1)))

  await until('the logout is carried out', () => runs === 1)

  assert.equal(pending.covers(0, 'one' as SidTag), false)
  assert.equal(pending.covers(0, 'lost 0' as SidTag), true)
})
