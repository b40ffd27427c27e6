import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { KeptKey, SessionId } from '../../src/core/names.ts'
import { LogoutCalls } from '../../src/logout/logout-calls.ts'
import { Sessions } from '../../src/session/live/live-sessions.ts'
import { PendingEndings } from '../../src/session/live/pending-endings.ts'
import { emailEndedSince, rememberEmailEnding } from '../../src/session/people/email-endings.ts'
import { sessionKey } from '../../src/session/record/record.ts'
import { createKeyring } from '../../src/session/record/sealed-record.ts'
import { transactionFromState } from '../../src/sign-in/transaction.ts'
import { recorder } from '../session/redis-stores.ts'
import { audience, gatewayParts, now, sampleRecord, secrets } from './formats.ts'

/** A session that a newer version has sealed again, and this version reads. */
async function newerSession(t: TestContext) {
  const { store } = gatewayParts()
  const log = recorder()
  const keyring = createKeyring(secrets, log)
  const pending = new PendingEndings(log)
  t.after(() => pending.clear())
  const sessions = new Sessions({
    ...{ store, keyring, log, pending, clock: { now: () => now }, audiences: [audience] },
    config: { idleTimeoutMs: 3_600_000, absoluteTimeoutMs: 7_200_000, storeOutageGraceMs: 0 },
    audit: { record: () => {} },
  })
  const id = await sessions.create(audience, sampleRecord(1), (await store.time()).latest + 1)
  const key = sessionKey(id as SessionId)
  const sealed = keyring.seal(Buffer.of(9, 1, 2), `gatehouse session ${key} for ${audience}`)
  assert.equal(await store.replace(key, sealed, 1), 'replaced')
  // Another process has replaced it, so the copy in memory is dropped.
  sessions.close()
  return { sessions, store, log, key, sealed }
}

test('A session of a newer version signs nobody in, and stays in the store as it is', async (t) => {
  const { sessions, store, log, key, sealed } = await newerSession(t)

  assert.equal(await sessions.find(key), undefined)
  assert.equal(await sessions.read(key), undefined)

  assert.deepEqual(Buffer.from((await store.read(key))?.sealed ?? []), sealed)
  const said = log.lines.filter(({ message }) => message === 'store.newer_format')
  assert.deepEqual(
    said.map(({ fields }) => [fields?.['kind'], fields?.['format']]),
    [['session', 9]],
    'once, not for each request',
  )
  assert.ok(!log.messages().includes('session.unreadable'))
})

test('A sign-out ends a session of a newer version', async (t) => {
  const { sessions, store, key } = await newerSession(t)

  assert.equal((await sessions.endings.endOne(key, 'person')).length, 1)

  assert.equal(await store.read(key), undefined)
})

test('A Logout Token ends a session of a newer version', async (t) => {
  const { sessions, store, key } = await newerSession(t)
  const order = { audience, sub: 'jane', jti: 'j', exp: now / 1000 + 60, iat: now / 1000 } as never

  await sessions.endings.endSid('one', order, 'provider' as never)

  assert.equal(await store.read(key), undefined)
})

test('A logout job of a newer version waits for a gateway of that version, however often it is tried', async (t) => {
  const parts = gatewayParts()
  const { jobs, keyring, store, newer } = parts
  let time = now
  store.jobs.open = async () => ({ kind: 'due', sealed, attempt: 99 })
  const sealed = keyring.seal(Buffer.of(9), `gatehouse logout job tag:hash for ${audience}`)
  const done: string[] = []
  store.jobs.take = async () => (time++ === now ? [{ key: 'tag:hash' as never, until: now }] : [])
  store.jobs.remove = async () => void done.push('removed')
  store.jobs.postpone = async (_audience, _key, _after, bytes) => {
    assert.equal(bytes, sealed)
    done.push('postponed')
  }
  const call = () => assert.fail('no call')
  const calls = new LogoutCalls({
    ...{ store: store.jobs, jobs, call, log: recorder(), longestCallMs: 1, audit: { record: () => {} } },
  })
  t.after(() => calls.finish())
  calls.noteEnded([], 'here')
  for (let turns = 0; turns < 20; turns += 1) await new Promise((resolve) => setImmediate(resolve))

  assert.deepEqual(done, ['postponed'])
  assert.deepEqual(newer, ['logout_job 9'])
})

test('Documents of a newer version are not replaced', async () => {
  const { keyring, store, signingKeys, stream, newer } = gatewayParts()
  const unavailable = { code: 'ERR_STORE_UNAVAILABLE' }
  const document = async (name: string) => {
    const sealed = keyring.seal(JSON.stringify({ v: 2 }), name)
    await store.writeDocument(name, { sealed, version: 0 }, 60_000)
    return async () => {
      const kept = await store.readDocument(name)
      assert.deepEqual([Buffer.from(kept?.sealed ?? []), kept?.version], [sealed, 1])
    }
  }
  const [sameKeys, sameStream] = [
    await document(`gatehouse signing keys for ${audience}`),
    await document(`gatehouse event stream for ${audience}`),
  ]

  await assert.rejects(signingKeys.synchronize(), unavailable)
  await assert.rejects(
    stream.change(() => ({ stream_id: 'mine', wanted: '', given: '' })),
    unavailable,
  )
  await sameKeys()
  await sameStream()
  assert.deepEqual(newer, ['signing_keys 2', 'event_stream 2'])

  // Without the time of the ending, a sign-in must not go on.
  store.readDocument = async () => ({ sealed: Buffer.from('{"v":2}'), version: 1 })
  await assert.rejects(emailEndedSince('jane@example.com', audience, now, store), unavailable)
  await assert.rejects(rememberEmailEnding('jane@example.com', audience, 'signal', store), unavailable)
})

test('A kept form of a newer version stays in the store', async () => {
  const { keyring, store, kept, person, newer } = gatewayParts()
  const writer = await kept.begin(person.tagOf('jane'), 60_000)
  assert.ok(typeof writer === 'object')
  let place = '' as KeptKey
  const { complete } = store.kept
  store.kept.complete = async (key, _head, ttl) => {
    place = key
    const context = keyring.seal(JSON.stringify({ v: 2 }), `gatehouse kept request ${key} head for ${audience}`)
    return complete.call(store.kept, key, context, ttl)
  }
  const form = await writer.complete({ host: 'a', method: 'POST', target: '/' } as never)
  assert.ok(typeof form === 'object')

  assert.equal(await kept.find(form.reference, form.setCookie.split(';')[0]), undefined)

  assert.equal((await store.kept.read(place))?.state, 'kept')
  assert.deepEqual(newer, ['kept_form 2'])
})

test('A sign-in that a newer version began is begun again', () => {
  const { keyring, newer } = gatewayParts()
  const state = keyring.seal(JSON.stringify({ v: 2, id: 'x' }), 'gatehouse sign-in attempt').toString('base64url')

  assert.equal(transactionFromState(state, keyring), undefined)
  assert.deepEqual(newer, ['sign_in 2'])
})
