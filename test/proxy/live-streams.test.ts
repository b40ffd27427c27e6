import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SessionKey } from '../../src/core/names.ts'
import { type LiveStream, LiveStreams } from '../../src/proxy/live-streams.ts'

const [a, b] = ['a', 'b'] as SessionKey[] as [SessionKey, SessionKey]

/** Streams that record when and why they are closed. */
function noting() {
  const cut: string[] = []
  const stream = (name: string, isEndless = false): LiveStream => ({
    isEndless,
    cut: (why) => void cut.push(`${name}: ${why}`),
  })
  return { cut, stream }
}

test('The streams of a session end with it, other streams do not', () => {
  const live = new LiveStreams()
  const { cut, stream } = noting()
  live.open(a, stream('a1'))
  live.open(a, stream('a2'))
  live.open(b, stream('b'))

  live.closeAll([a])

  assert.deepEqual(cut, ['a1: session_ended', 'a2: session_ended'])
})

test('A released stream is not closed, even if it was released twice', () => {
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

test('A stream may release itself while it is closed', () => {
  const live = new LiveStreams()
  const releases: (() => void)[] = []
  for (let each = 0; each < 3; each++) releases.push(live.open(a, { isEndless: false, cut: () => releases[each]?.() }))

  live.closeAll([a])

  assert.equal(live.size, 0)
  assert.deepEqual([...live.sessions()], [])
})

test('A stream without a session does not end with any session', () => {
  const live = new LiveStreams()
  const { cut, stream } = noting()
  live.open(undefined, stream('public'))

  live.closeAll(live.sessions())

  assert.deepEqual(cut, [])
})

test('A shutdown closes endless streams of all clients and lets other exchanges finish', () => {
  const live = new LiveStreams()
  const { cut, stream } = noting()
  live.open(undefined, stream('public tunnel', true))
  live.open(undefined, stream('public download'))
  live.open(a, stream('tunnel', true))
  live.open(a, stream('download'))

  live.closeEndless()

  assert.deepEqual(cut, ['public tunnel: going_away', 'tunnel: going_away'])
})
