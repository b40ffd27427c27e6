import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SidTag, SessionKey } from '../../src/core/names.ts'
import type { LogFields } from '../../src/observe/log.ts'
import { OwedEndings, type OwedEnding } from '../../src/session/owed-endings.ts'
import { until } from '../support/until.ts'

function owedEndings() {
  const errors: string[] = []
  const nothing = () => {}
  const log = {
    ...{ debug: nothing, info: nothing, warn: nothing, announce: nothing },
    error: (message: string, _fields?: LogFields) => void errors.push(message),
  }
  return { owed: new OwedEndings(log), errors }
}

const away = () => Promise.reject(new Error('away'))
const ofSid = (sid: string, give: OwedEnding['give'] = away): OwedEnding => ({
  ...{ name: `token ${sid}`, whom: sid as SidTag, until: 1_000, isProven: true, give },
})
const ofCookie = (key: string): OwedEnding => ({
  ...{ name: key, whom: key as SessionKey, until: 1_000, isProven: false, give: away },
})

test('what was made after the order is not meant', (t) => {
  const { owed } = owedEndings()
  t.after(() => owed.forget())
  owed.owe(ofSid('one'))

  assert.equal(owed.concern(1_000, 'other' as SidTag, 'one' as SidTag), true)
  assert.equal(owed.concern(1_001, 'one' as SidTag), false)
  owed.settle('token one')
  assert.equal(owed.isEmpty, true)
})

test('cookies that strangers make up displace no Logout Token, and take no more memory than they may', (t) => {
  const { owed, errors } = owedEndings()
  t.after(() => owed.forget())
  owed.owe(ofSid('one'))

  for (let n = 0; n < 20_000; n++) owed.owe(ofCookie(`key ${n}`))

  assert.equal(owed.concern(0, 'one' as SidTag), true)
  assert.equal(owed.concern(0, 'key 18999' as SessionKey), false)
  assert.equal(owed.concern(0, 'key 19000' as SessionKey), true)
  assert.deepEqual(errors, ['session.endings_forgotten'], 'told once')
})

test('orders that are never taken do not keep the others waiting', async (t) => {
  const { owed } = owedEndings()
  t.after(() => owed.forget())
  let given = 0
  for (let n = 0; n < 30; n++) owed.owe(ofSid(`lost ${n}`))
  owed.owe(ofSid('one', async () => void (given += 1)))

  await until('it is carried out', () => given === 1)

  assert.equal(owed.concern(0, 'one' as SidTag), false)
  assert.equal(owed.concern(0, 'lost 0' as SidTag), true)
})
