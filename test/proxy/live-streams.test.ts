import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SessionKey } from '../../src/core/names.ts'
import { LiveStreams } from '../../src/proxy/live-streams.ts'

const [a, b] = ['a', 'b'] as SessionKey[] as [SessionKey, SessionKey]

test('what is open for a session is cut with it, and nothing else', () => {
  const live = new LiveStreams()
  const cut: string[] = []
  live.open(a, (why) => cut.push(`a1 ${why}`))
  live.open(a, (why) => cut.push(`a2 ${why}`))
  live.open(b, (why) => cut.push(`b ${why}`))

  live.closeAll([a], 'logout')

  assert.deepEqual(cut, ['a1 logout', 'a2 logout'])
})

test('what is released is forgotten, however often', () => {
  const live = new LiveStreams()
  const release = live.open(a, () => assert.fail('cut after its release'))
  live.open(b, () => {})

  release()
  release()
  live.closeAll([a])

  assert.equal(live.size, 1)
  assert.deepEqual([...live.sessions()], [b])
})

test('a stream may release itself while it is cut', () => {
  const live = new LiveStreams()
  const releases: (() => void)[] = []
  for (let each = 0; each < 3; each++) releases.push(live.open(a, () => releases[each]?.()))

  live.closeAll([a])

  assert.equal(live.size, 0)
  assert.deepEqual([...live.sessions()], [])
})

test('a stream without a session ends with all of them only', () => {
  const live = new LiveStreams()
  const cut: string[] = []
  live.open(undefined, (why) => cut.push(why))

  live.closeAll(live.sessions())
  assert.deepEqual(cut, [])
  live.closeEverything('shutting down')

  assert.deepEqual(cut, ['shutting down'])
})
