import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { SessionKey } from '../../src/core/names.ts'
import { LiveStreams } from '../../src/proxy/live-streams.ts'
import { watchLiveSessions } from '../../src/server/watch-live-sessions.ts'
import type { SessionRecord, StoredSession } from '../../src/session/record.ts'

const hour = 3_600_000
const minute = 60_000

/** Streams, a store of sessions that may be away, and a clock that a test moves. */
function watching(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let now = 0
  let isAway = false
  let reads = 0
  let arrive = () => {}
  const ends = new Map<SessionKey, number>()
  const cut: string[] = []
  const live = new LiveStreams()
  const sessions = {
    read: async (key: SessionKey): Promise<StoredSession | undefined> => {
      reads += 1
      arrive()
      if (isAway) throw new Error('away')
      const absolute_expires_at = ends.get(key)
      if (absolute_expires_at === undefined) return undefined
      return { key, version: 1, bytes: 0, record: { absolute_expires_at } as SessionRecord }
    },
  }
  const log = { debug() {}, info() {}, warn() {}, error() {}, announce() {} }
  const parts = { live, sessions, known: new Map(), clock: { now: () => now }, log }
  let watch = watchLiveSessions(parts)
  t.after(() => watch.stop())
  /** Lets everything happen that is due, and all that follows from it. */
  const settle = async () => {
    for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate)
  }
  return {
    watch: { look: () => watch.look(), stop: () => watch.stop() },
    reload: () => {
      watch.stop()
      watch = watchLiveSessions(parts)
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
    goAway: () => void (isAway = true),
    comeBack: () => void (isAway = false),
    nextRead: () => new Promise<void>((resolve) => (arrive = resolve)),
    pass: async (ms: number) => {
      now += ms
      t.mock.timers.tick(ms)
      await settle()
    },
  }
}

test('a stream lasts at most five seconds longer than its session', async (t) => {
  const { session, pass, cut } = watching(t)
  session('other')
  session('jane').end()

  await pass(4_999)
  assert.deepEqual(cut, [])
  await pass(1)

  assert.deepEqual(cut, ['jane'])
})

test('a look is taken again and again', async (t) => {
  const { session, pass, cut } = watching(t)
  const jane = session('jane')
  await pass(5_000)
  await pass(5_000)
  assert.deepEqual(cut, [])

  jane.end()
  await pass(5_000)

  assert.deepEqual(cut, ['jane'])
})

test('when notices may have been missed the look is taken at once', async (t) => {
  const { session, watch, cut, settle } = watching(t)
  session('jane').end()

  watch.look()
  await settle()

  assert.deepEqual(cut, ['jane'])
})

test('when notices are missed during a look it is taken again, and there is never more than one', async (t) => {
  const { session, watch, cut, settle, nextRead, reads } = watching(t)
  const jane = session('jane')
  const reading = nextRead()
  watch.look()
  await reading
  jane.end()

  for (let each = 0; each < 10; each++) watch.look()
  await settle()

  assert.deepEqual(cut, ['jane'])
  assert.equal(reads(), 2)
})

test('a stream ends at the very moment its session may not be longer, without the store', async (t) => {
  const { session, watch, pass, settle, cut, goAway } = watching(t)
  session('jane', 2_000)
  session('other')
  watch.look()
  await settle()
  goAway()

  await pass(1_999)
  assert.deepEqual(cut, [])
  await pass(1)

  assert.deepEqual(cut, ['jane'])
})

test('a store that is away ends nothing, and is asked again every second', async (t) => {
  const { session, watch, pass, settle, cut, goAway, comeBack } = watching(t)
  session('jane').end()
  goAway()
  watch.look()
  await settle()
  await pass(1_000)
  assert.deepEqual(cut, [])

  comeBack()
  await pass(1_000)

  assert.deepEqual(cut, ['jane'])
})

test('a stream whose session cannot be asked for is open for five minutes and no longer', async (t) => {
  const { session, pass, watch, settle, cut, goAway, comeBack } = watching(t)
  session('jane')
  watch.look()
  await settle()
  goAway()
  await pass(4 * minute)
  comeBack()
  await pass(1_000)
  goAway()
  await pass(minute)
  assert.deepEqual(cut, [], 'it was asked for in between')

  await pass(3 * minute)
  assert.deepEqual(cut, [])
  await pass(minute)

  assert.deepEqual(cut, ['jane'])
})

for (const [what, end] of [
  ['five minutes', hour],
  ['its session', 2 * minute],
] as const)
  test(`a reload while the store is away leaves no stream open for longer than ${what}`, async (t) => {
    const { session, pass, watch, settle, cut, goAway, reload } = watching(t)
    session('jane', end)
    watch.look()
    await settle()
    goAway()
    await pass(minute)
    reload()
    await pass(minute - 1)
    assert.deepEqual(cut, [])
    reload()

    await pass(end === hour ? 3 * minute + 1 : 5_000)

    assert.deepEqual(cut, ['jane'])
  })

test('many sessions are looked up in steps', async (t) => {
  const { session, watch, settle, cut, reads } = watching(t)
  for (let each = 0; each < 180; each++) session(`s${each}`)
  session('jane').end()

  watch.look()
  await settle()
  await settle()

  assert.equal(reads(), 181)
  assert.deepEqual(cut, ['jane'])
})

test('a watch that was stopped looks no more', async (t) => {
  const { session, watch, pass, reads } = watching(t)
  session('jane')

  watch.stop()
  watch.look()
  await pass(60_000)

  assert.equal(reads(), 0)
})
