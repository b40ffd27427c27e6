import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SessionKey } from '../../src/core/names.ts'
import { LiveStreams } from '../../src/proxy/live-streams.ts'

test('Closing a stream looks through no list of the others', (t) => {
  const live = new LiveStreams()
  const releases = Array.from({ length: 1_000 }, (_, n) =>
    live.open(n % 2 === 0 ? undefined : ('session' as SessionKey), { isEndless: true, cut: () => {} }),
  )
  let searched = 0
  for (const name of ['indexOf', 'lastIndexOf', 'findIndex', 'findLastIndex', 'includes', 'filter'] as const) {
    const search = Array.prototype[name] as (this: unknown[], ...args: unknown[]) => unknown
    const counting = function (this: unknown[], ...args: unknown[]): unknown {
      searched += this.length
      return search.apply(this, args)
    }
    Object.defineProperty(Array.prototype, name, { value: counting, writable: true, configurable: true })
    t.after(() => Object.defineProperty(Array.prototype, name, { value: search, writable: true, configurable: true }))
  }

  // The oldest is released first, as when a gateway shuts down.
  for (const release of releases) release()

  assert.equal(searched, 0)
  assert.equal(live.size, 0)
})
