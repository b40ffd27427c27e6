import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startWorld } from '../support/world.ts'

for (const [length, comesBackTo] of [
  [1990, /^\/echo\?q=a+$/],
  [24_000, /^\/$/],
] as const) {
  test(`A sign-in works for a page with a query of ${length} characters`, async (t) => {
    const world = await startWorld(t)
    const jane = world.browser()

    const page = await jane.get(`${world.url}/echo?q=${'a'.repeat(length)}`)

    assert.equal(page.status, 200)
    const { pathname, search } = new URL(page.url)
    assert.match(pathname + search, comesBackTo)
  })
}

test('A return_to that the gateway would not follow is left out of the link', async (t) => {
  const world = await startWorld(t)

  const { headers } = await world.browser().send(`${world.url}/echo?q=${'%20'.repeat(6000)}`)

  assert.equal(headers['location'], '/.gatehouse/sign-in')
})
