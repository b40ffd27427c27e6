import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { emailEndedSince, rememberEmailEnding } from '../../src/session/people/email-endings.ts'
import { memoryStore } from '../support/memory-store.ts'

const address = 'jane@example.com'

function open(t: TestContext) {
  const clock = { now: () => Date.UTC(2026, 0, 1) }
  const store = memoryStore({ maxSessions: 10, clock })
  t.after(() => store.close())
  return { store, now: clock.now() }
}

test('A sign-in that began before the sessions of its e-mail address ended learns who ended them', async (t) => {
  for (const by of ['administrator', 'signal'] as const) {
    const { store, now } = open(t)
    await rememberEmailEnding(address, 'orders', by, store, now)

    assert.equal(await emailEndedSince(address, 'orders', now - 1, store), by)
    assert.equal(await emailEndedSince(address, 'orders', now, store), by)
    assert.equal(await emailEndedSince(address, 'orders', now + 1, store), undefined)
    assert.equal(await emailEndedSince(address, 'stock', now - 1, store), undefined)
    assert.equal(await emailEndedSince('samir@example.com', 'orders', now - 1, store), undefined)
  }
})

test('An earlier ending of the same address does not replace a later one', async (t) => {
  const { store, now } = open(t)
  await rememberEmailEnding(address, 'orders', 'signal', store, now)
  await rememberEmailEnding(address, 'orders', 'administrator', store, now - 1_000)

  assert.equal(await emailEndedSince(address, 'orders', now, store), 'signal')
  await rememberEmailEnding(address, 'orders', 'administrator', store, now + 1_000)
  assert.equal(await emailEndedSince(address, 'orders', now + 1_000, store), 'administrator')
})

test('Without a time, the ending is of now in the time of the store', async (t) => {
  const { store } = open(t)
  const { latest } = await store.time()
  await rememberEmailEnding(address, 'orders', 'signal', store)

  assert.equal(await emailEndedSince(address, 'orders', latest, store), 'signal')
})
