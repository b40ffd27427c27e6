import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { SessionKey } from '../../src/core/names.ts'
import { LiveStreams } from '../../src/proxy/live-streams.ts'
import { LiveSessionsWatch } from '../../src/server/watch-live-sessions.ts'
import type { SessionRecord, StoredSession } from '../../src/session/record/record.ts'
import type { StoreNotice } from '../../src/session/store/store.ts'

const hour = 3_600_000
const minute = 60_000

/** Streams, a session store that a test can make unreachable, and a clock that a test moves. */
function startWatch(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let now = 0
  let isDisconnected = false
  let reads = 0
  let onRead = () => {}
  let notify = (_notice: StoreNotice) => {}
  const ends = new Map<SessionKey, number>()
  const cut: string[] = []
  const live = new LiveStreams()
  const sessions = {
    read: async (key: SessionKey): Promise<StoredSession | undefined> => {
      reads += 1
      onRead()
      if (isDisconnected) throw new Error('unreachable')
      const absolute_expires_at = ends.get(key)
      if (absolute_expires_at === undefined) return undefined
      return { key, audience: '', version: 1, bytes: 0, record: { absolute_expires_at } as SessionRecord }
    },
  }
  const log = { debug() {}, info() {}, warn() {}, error() {}, announce() {} }
  const store = {
    onNotice: (listener: typeof notify) => {
      notify = listener
      return () => void (notify = () => {})
    },
  }
  const exchangedTokens = { endOver() {} }
  const parts = { live, exchangedTokens, sessions, store, streamSessions: new Map(), clock: { now: () => now }, log }
  let watch = new LiveSessionsWatch(parts)
  t.after(() => watch.stop())
  /** Lets all pending promises settle. */
  const settle = async () => {
    for (let round = 0; round < 5; round += 1) await new Promise(setImmediate)
  }
  return {
    check: () => notify({ kind: 'resumed' }),
    stop: () => watch.stop(),
    reload: () => {
      watch.stop()
      watch = new LiveSessionsWatch(parts)
    },
    cut,
    settle,
    reads: () => reads,
    session: (name: string, end = hour) => {
      const key = name as SessionKey
      ends.set(key, end)
      const release = live.open(key, {
        isEndless: true,
        cut: () => {
          cut.push(name)
          release()
        },
      })
      return { end: () => void ends.delete(key) }
    },
    token: (name: string) => {
      let isOver = false
      const stream = { isEndless: true, cut: () => void (cut.push(name), release()) }
      const release = live.open(undefined, stream, () => isOver)
      return { end: () => void (isOver = true) }
    },
    disconnect: () => void (isDisconnected = true),
    reconnect: () => void (isDisconnected = false),
    nextRead: () => new Promise<void>((resolve) => (onRead = resolve)),
    pass: async (ms: number) => {
      now += ms
      t.mock.timers.tick(ms)
      await settle()
    },
  }
}

test('A stream ends at most five seconds after its session', async (t) => {
  const { session, pass, cut } = startWatch(t)
  session('other')
  session('jane').end()

  await pass(4_999)
  assert.deepEqual(cut, [])
  await pass(1)

  assert.deepEqual(cut, ['jane'])
})

test('A stream of an access token ends at most five seconds after the token', async (t) => {
  const { token, pass, cut } = startWatch(t)
  token('other')
  token('jane').end()

  await pass(4_999)
  assert.deepEqual(cut, [])
  await pass(1)

  assert.deepEqual(cut, ['jane'])
})

test('The sessions of open streams are checked every five seconds', async (t) => {
  const { session, pass, cut } = startWatch(t)
  const jane = session('jane')
  await pass(5_000)
  await pass(5_000)
  assert.deepEqual(cut, [])

  jane.end()
  await pass(5_000)

  assert.deepEqual(cut, ['jane'])
})

test('When notices of endings may have been lost, the sessions are checked at once', async (t) => {
  const { session, check, cut, settle } = startWatch(t)
  session('jane').end()

  check()
  await settle()

  assert.deepEqual(cut, ['jane'])
})

test('When notices are lost during a check, one more check follows', async (t) => {
  const { session, check, cut, settle, nextRead, reads } = startWatch(t)
  const jane = session('jane')
  const reading = nextRead()
  check()
  await reading
  jane.end()

  for (let each = 0; each < 10; each++) check()
  await settle()

  assert.deepEqual(cut, ['jane'])
  assert.equal(reads(), 2)
})

test('A stream ends with the absolute timeout of its session while the store is unreachable', async (t) => {
  const { session, check, pass, settle, cut, disconnect } = startWatch(t)
  session('jane', 2_000)
  session('other')
  check()
  await settle()
  disconnect()

  await pass(1_999)
  assert.deepEqual(cut, [])
  await pass(1)

  assert.deepEqual(cut, ['jane'])
})

test('An unreachable store ends no stream, and is tried again every second', async (t) => {
  const { session, check, pass, settle, cut, disconnect, reconnect } = startWatch(t)
  session('jane').end()
  disconnect()
  check()
  await settle()
  await pass(1_000)
  assert.deepEqual(cut, [])

  reconnect()
  await pass(1_000)

  assert.deepEqual(cut, ['jane'])
})

test('A stream ends when the store has been unreachable for five minutes', async (t) => {
  const { session, pass, check, settle, cut, disconnect, reconnect } = startWatch(t)
  session('jane')
  check()
  await settle()
  disconnect()
  await pass(4 * minute)
  reconnect()
  await pass(1_000)
  disconnect()
  await pass(minute)
  assert.deepEqual(cut, [], 'the store confirmed the session in between')

  await pass(3 * minute)
  assert.deepEqual(cut, [])
  await pass(minute)

  assert.deepEqual(cut, ['jane'])
})

for (const [limit, end] of [
  ['five minutes', hour],
  ['its session', 2 * minute],
] as const)
  test(`A reload while the store is unreachable leaves no stream open for longer than ${limit}`, async (t) => {
    const { session, pass, check, settle, cut, disconnect, reload } = startWatch(t)
    session('jane', end)
    check()
    await settle()
    disconnect()
    await pass(minute)
    reload()
    await pass(minute - 1)
    assert.deepEqual(cut, [])
    reload()

    await pass(end === hour ? 3 * minute + 1 : 5_000)

    assert.deepEqual(cut, ['jane'])
  })

test('A check reads many sessions in batches', async (t) => {
  const { session, check, settle, cut, reads } = startWatch(t)
  for (let each = 0; each < 180; each++) session(`s${each}`)
  session('jane').end()

  check()
  await settle()
  await settle()

  assert.equal(reads(), 181)
  assert.deepEqual(cut, ['jane'])
})

test('A stopped watch reads no sessions', async (t) => {
  const { session, check, stop, pass, reads } = startWatch(t)
  session('jane')

  stop()
  check()
  await pass(60_000)

  assert.equal(reads(), 0)
})
