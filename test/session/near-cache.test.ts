// Own process: the memory of the whole process is measured, after garbage collections of all of it.
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { SessionKey } from '../../src/core/names.ts'
import { Keyring } from '../../src/core/seal.ts'
import type { Log } from '../../src/observe/log.ts'
import { NearCache } from '../../src/session/live/near-cache.ts'
import type { SessionRecord, StoredSession, UnopenedSession } from '../../src/session/record/record.ts'
import { sealRecord } from '../../src/session/record/sealed-record.ts'
import { searchFor } from '../support/searches.ts'
import { silent } from '../support/signing-provider.ts'

const mebibyte = 1024 * 1024
const keyring = new Keyring([Buffer.alloc(32)])

function nearCache(log: Log = silent): NearCache {
  return new NearCache({ keyring, log })
}

function stored(n: number, bytes: number): StoredSession {
  const record = {} as StoredSession['record']
  return { key: `session-${n}` as SessionKey, audience: 'a', version: 1, record, bytes }
}

test('sessions in memory take at most 128 MiB: the ones used longest ago are dropped', () => {
  const near = nearCache()
  for (let n = 0; n < 200; n++) near.keep(stored(n, mebibyte), 0)

  const kept = near.keysOf(() => true)
  assert.equal(kept.length, 127)
  assert.deepEqual(near.get('session-72' as SessionKey), undefined)
  assert.equal(near.get('session-73' as SessionKey)?.stored.key, 'session-73')
})

test('the size of a session includes its entry, besides its record', () => {
  const near = nearCache()
  const [entry, record] = [768, 8192 - 768]
  for (let n = 0; n < 20_000; n++) near.keep(stored(n, record), 0)

  assert.equal(near.keysOf(() => true).length, (128 * mebibyte) / (entry + record))
})

test('a session that was read from the store grows when it is used again, and when its tokens are', () => {
  const near = nearCache()
  const large = Buffer.alloc(mebibyte)
  const others = Array.from({ length: 127 }, (_, n) => unopened(n, large))
  const kept = () => others.filter(({ key }) => near.has(key)).length
  const tokens = { obtained_at: 1, access_token: 'a'.repeat(mebibyte), id_token: 'i' }
  const claims = { sub: 's', text: 'c'.repeat(mebibyte) }
  const times = { created_at: 1, absolute_expires_at: 2, userinfo_read_at: 1 }
  const one = sealedSession(1_000, { iss: '', sub: 's', ...times, tokens, claims })
  near.keep(one, 0)
  for (const other of others) near.keep(other, 0)
  assert.equal(kept(), 127)

  const used = near.get(one.key) ?? assert.fail()
  assert.equal(used.stored.record.sub, 's')
  assert.equal(kept(), 123, 'claims count four times')
  assert.equal(used.stored.record.tokens.access_token.length, mebibyte)
  assert.equal(kept(), 122)

  near.drop(one.key)
  near.keep(one, 0)
  const dropped = near.get(one.key) ?? assert.fail()
  near.drop(one.key)
  for (const other of others) near.keep(other, 0)
  assert.equal(dropped.stored.record.tokens.id_token, 'i')
  assert.equal(kept(), 127, 'a session that has left memory does not count')
})

test('to find sessions in memory, no record is opened', () => {
  const near = nearCache()
  // The same records would take half a second for each Logout Token that the store cannot take.
  near.keep(unopened(1, Buffer.from('this is not a record')), 0)
  const record = { sub: 'other' } as StoredSession['record']
  near.keep({ ...stored(2, 1), record }, 0)

  assert.deepEqual(
    near.keysOf(({ audience, sub }) => audience === 'a' && sub === 's'),
    ['session-1'],
  )
  assert.deepEqual(
    near.keysOf(({ sub }) => sub === 'other'),
    ['session-2'],
  )
})

/** Sealed, so that it can be opened. */
function sealedSession(n: number, record: SessionRecord): UnopenedSession {
  const session = unopened(n, Buffer.alloc(0))
  return { ...session, sub: record.sub, sealed: sealRecord(keyring, session, record).sealed }
}

function unopened(n: number, bytes: Buffer): UnopenedSession {
  return { key: `session-${n}` as SessionKey, audience: 'a', version: 1, sub: 's', sealed: bytes }
}

/** A session with 3,000 characters that do not compress, and that follow from its number. */
function personalSession(n: number): UnopenedSession {
  const sub = `person-${n}`
  const times = { created_at: 1, absolute_expires_at: 2, userinfo_read_at: 1 }
  return sealedSession(n, { iss: 'i', sub, ...times, tokens: tokensOf(sub), claims: { sub } })
}

function tokensOf(sub: string) {
  const access_token = createHash('shake256', { outputLength: 2_250 }).update(sub).digest('base64url')
  return { obtained_at: 1, access_token, id_token: 'i' }
}

test('a session in memory never opens as another one, while sessions come, go and move to the next configuration', () => {
  let near = nearCache()
  const count = searchFor(12_000, 4_000)
  for (let n = 0; n < count; n++) {
    near.keep(personalSession(n), n)
    // Most leave memory, so that the others are moved. Some are used, and some are replaced.
    if (n % 4 !== 0) near.drop(`session-${n - count / 10}` as SessionKey)
    if (n % 7 === 0) near.get(`session-${n - 5}` as SessionKey)
    if (n % 11 === 0) near.keep({ ...personalSession(n - 2), version: 2 }, n)
    if ((n + 1) % (count / 4) === 0) {
      const successor = nearCache()
      successor.takeOver(near)
      near.clear()
      near = successor
    }
  }

  const kept = near.keysOf(() => true)
  assert.ok(kept.length > count / 4)
  for (const key of kept) {
    const sub = key.replace('session', 'person')
    const { record } = near.get(key)?.stored ?? assert.fail(key)
    assert.deepEqual(
      [record.sub, record.claims['sub'], record.tokens.access_token],
      [sub, sub, tokensOf(sub).access_token],
    )
  }
})

test('a session that was opened or has left memory never leaves its sealed record behind', () => {
  const near = nearCache()
  // They come again and again, because it takes long to seal one.
  const sessions = Array.from({ length: 99 }, (_, n) => personalSession(n))
  const session = (n: number) => sessions[n % sessions.length] as UnopenedSession
  const before = bufferBytes()
  for (let n = 0; n < 10_000; n++) {
    near.keep(session(n), 0)
    if (n % 2 === 0) near.get(session(n).key)
    if (n >= 10) near.drop(session(n - 10).key)
  }
  assert.ok(bufferBytes() - before < 8 * mebibyte)
  assert.equal(near.keysOf(() => true).length, 10)
})

test('reloads never leave memory behind that only a few sessions use', () => {
  let near = nearCache()
  const before = bufferBytes()
  const sealed = randomBytes(3_000)
  for (let reload = 0; reload < 30; reload++) {
    for (let n = 0; n < 700; n++) near.keep(unopened(reload * 700 + n, sealed), 0)
    for (let n = 1; n < 700; n++) near.drop(`session-${reload * 700 + n}` as SessionKey)
    const successor = nearCache()
    successor.takeOver(near)
    near.clear()
    near = successor
  }
  assert.ok(bufferBytes() - before < 20 * mebibyte)
  assert.equal(near.keysOf(() => true).length, 30)
})

test('after a reload, a session never keeps the memory of an earlier configuration', async () => {
  const successor = nearCache()
  const earlier = (() => {
    const near = nearCache()
    near.keep(personalSession(1), 0)
    near.keep(personalSession(2), 0)
    near.get('session-1' as SessionKey)
    successor.takeOver(near)
    near.clear()
    return new WeakRef(near)
  })()
  // A target stays in memory until the end of the job.
  await new Promise(setImmediate)
  bufferBytes()
  assert.equal(earlier.deref(), undefined)
  for (const n of [1, 2]) {
    const { record } = successor.get(`session-${n}` as SessionKey)?.stored ?? assert.fail()
    assert.equal(record.tokens.access_token, tokensOf(`person-${n}`).access_token)
  }
})

test('a record in memory that cannot be opened is never served, leaves memory and is logged', () => {
  const lines: string[] = []
  const log = { ...silent, error: (message: string) => void lines.push(message) }
  const near = nearCache(log)
  const one = unopened(1, Buffer.from('this is not a record'))
  near.keep(one, 0)
  assert.equal(near.get(one.key), undefined)
  assert.equal(near.has(one.key), false)
  assert.deepEqual(lines, ['session.memory_unreadable'])
})

test('a change overtakes the reads that have begun before it, and no later ones', () => {
  const near = nearCache()
  const { key } = stored(1, 1)
  const before = near.reading(key)
  near.drop(key)
  const after = near.reading(key)
  assert.deepEqual([before.areOvertaken, after.areOvertaken], [true, false])

  near.settle(key, before)
  near.drop(key)
  assert.equal(after.areOvertaken, true)
})

/** The memory of all buffers after a garbage collection, in bytes. */
function bufferBytes(): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  collect()
  return process.memoryUsage().arrayBuffers
}
