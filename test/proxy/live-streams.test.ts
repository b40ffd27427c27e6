import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SessionKey } from '../../src/core/names.ts'
import { type LiveStream, LiveStreams } from '../../src/proxy/live-streams.ts'

const [a, b] = ['a', 'b'] as SessionKey[] as [SessionKey, SessionKey]

/** Streams that write down when and why they are cut. */
function noting() {
  const cut: string[] = []
  const stream = (name: string, isEndless = false): LiveStream => ({
    isEndless,
    cut: (why) => void cut.push(`${name}: ${why}`),
  })
  return { cut, stream }
}

test('what is open for a session is cut with it, and nothing else', () => {
  const live = new LiveStreams()
  const { cut, stream } = noting()
  live.open(a, stream('a1'))
  live.open(a, stream('a2'))
  live.open(b, stream('b'))

  live.closeAll([a])

  assert.deepEqual(cut, ['a1: session_ended', 'a2: session_ended'])
})

test('what is released is forgotten, however often', () => {
  const live = new LiveStreams()
  const { cut, stream } = noting()
  const release = live.open(a, stream('a'))
  live.open(b, stream('b'))

  release()
  release()
  live.closeAll([a])

  assert.deepEqual(cut, [])
  assert.equal(live.size, 1)
  assert.deepEqual([...live.sessions()], [b])
})

test('a stream may release itself while it is cut', () => {
  const live = new LiveStreams()
  const releases: (() => void)[] = []
  for (let each = 0; each < 3; each++) releases.push(live.open(a, { isEndless: false, cut: () => releases[each]?.() }))

  live.closeAll([a])

  assert.equal(live.size, 0)
  assert.deepEqual([...live.sessions()], [])
})

test('a stream without a session ends with no session', () => {
  const live = new LiveStreams()
  const { cut, stream } = noting()
  live.open(undefined, stream('public'))

  live.closeAll(live.sessions())

  assert.deepEqual(cut, [])
})

test('a shutdown ends what would never end, whosever it is, and leaves the rest its time', () => {
  const live = new LiveStreams()
  const { cut, stream } = noting()
  live.open(undefined, stream('public tunnel', true))
  live.open(undefined, stream('public download'))
  live.open(a, stream('tunnel', true))
  live.open(a, stream('download'))

  live.closeEndless()

  assert.deepEqual(cut, ['public tunnel: going_away', 'tunnel: going_away'])
})
