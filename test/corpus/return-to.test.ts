import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readCases, repeated, runCases, type Lane } from './lanes.ts'

interface ReturnTo {
  readonly target: string
  /** The path at which the sign-in ends. */
  readonly ok?: boolean
}

const { cases } = readCases<{ readonly cases: readonly ReturnTo[] }>('return-to.json')
const mostHops = 6

test('A sign-in ends on this origin, whatever the return-to target is', { concurrency: true }, async (t) => {
  await runCases(
    t,
    cases,
    ({ target }) => JSON.stringify(target),
    async ({ target, ok = false }, lane) => {
      const wanted = repeated(target).replaceAll('{host}', lane.host)
      const { location, signedIn } = await signInTo(wanted, lane)

      const landed = new URL(location, lane.world.url)
      assert.equal(landed.origin, lane.world.url)
      assert.doesNotMatch(location, /[\r\n\t\0\\]/)
      assert.doesNotMatch(landed.pathname, /^\/\.gatehouse(?:\/|$)/i)
      assert.ok(location.length <= 8192)
      assert.ok(signedIn)
      if (ok) assert.equal(landed.pathname + landed.search, pathOf(wanted, lane))
    },
  )
})

/**
 * Goes through a sign-in as a browser does. Every URL on the way must belong to the gateway or the
 * provider.
 */
async function signInTo(target: string, { world }: Lane): Promise<{ location: string; signedIn: boolean }> {
  const jane = world.browser()
  const start = `${world.url}/.gatehouse/sign-in?return_to=${encodeURIComponent(target)}`
  const callback = await jane.until(start, '/.gatehouse/callback')
  let visit = await jane.send(callback)
  for (let hops = 0; hops < mostHops; hops += 1) {
    assert.equal(visit.headers['refresh'], undefined)
    assert.doesNotMatch(String(visit.headers['set-cookie']), /evil/)
    const { location } = visit.headers
    if (typeof location === 'string') return { location, signedIn: jane.cookies.has('gatehouse') }
    visit = await jane.send(visit.url)
  }
  throw new Error(`no redirect from ${visit.url}: ${visit.status}`)
}

function pathOf(target: string, { world }: Lane): string {
  const { pathname, search } = new URL(target, world.url)
  return pathname + search
}
