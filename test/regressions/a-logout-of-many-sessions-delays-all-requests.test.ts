import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { Keyring } from '../../src/core/seal.ts'
import { Sessions } from '../../src/session/live/live-sessions.ts'
import { PendingEndings } from '../../src/session/live/pending-endings.ts'
import { sessionKey } from '../../src/session/record/record.ts'
import { memoryStore } from '../support/memory-store.ts'

const quiet = { debug() {}, info() {}, warn() {}, error() {}, announce() {} }

test('A Logout Token for many sessions of a person ends all of them at once, and lets other requests pass', async (t) => {
  const now = Date.UTC(2026, 0, 1)
  const clock = { now: () => now }
  const store = memoryStore({ maxSessions: 2_000, clock })
  t.after(() => store.close())
  let audited = 0
  const sessions = new Sessions({
    ...{ store, clock, log: quiet, pending: new PendingEndings(quiet) },
    keyring: new Keyring([Buffer.alloc(32, 1)]),
    audiences: ['orders'],
    config: { idleTimeoutMs: 60_000, absoluteTimeoutMs: 600_000, storeOutageGraceMs: 0 },
    audit: { record: () => void (audited += 1) },
  })
  const ids = await Promise.all(
    Array.from({ length: 1_000 }, (_, number) => {
      const tokens = { access_token: 'a', obtained_at: 0, id_token: 'i' }
      const person = { iss: 'https://id.example.com', sub: 'jane', sid: String(number), tokens }
      return sessions.create('orders', { ...person, claims: { sub: 'jane' }, userinfo_read_at: 0 }, now)
    }),
  )
  const keys = ids.map((id) => sessionKey(id ?? assert.fail('not created')))
  audited = 0
  let hasEnded = false
  const ending = sessions.endings
    .endSub('jane', { audience: 'orders', jti: 'one', exp: now / 1000 + 60 }, 'provider')
    .finally(() => (hasEnded = true))

  let most = 0
  for (let before = 0; !hasEnded; before = audited) {
    await turn()
    most = Math.max(most, audited - before)
    for (const key of keys) assert.equal(sessions.findInMemory(key), undefined)
  }

  assert.equal((await ending).length, 1_000)
  assert.equal(audited, 1_000)
  assert.ok(most <= 100, `${most} audit events without a pause`)
})
