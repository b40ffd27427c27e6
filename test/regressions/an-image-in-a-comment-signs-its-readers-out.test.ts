import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startWorld } from '../support/world.ts'

for (const [what, mode, dest] of [
  ['an image', 'no-cors', 'image'],
  ['an image with crossorigin', 'cors', 'image'],
  ['a video with crossorigin', 'cors', 'video'],
  ['an object', 'navigate', 'object'],
  ['an embed', 'navigate', 'embed'],
  ['a link that is fetched in advance', 'no-cors', 'empty'],
] as const)
  test(`In content that a user wrote on this site, ${what} signs nobody out`, async (t) => {
    const world = await startWorld(t)
    const jane = world.browser()
    await jane.get(`${world.url}/echo`)
    const headers = { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': mode, 'sec-fetch-dest': dest }

    const { headers: response } = await jane.send(`${world.url}/logout`, { headers })
    await jane.send(new URL(String(response['location']), world.url).href, { headers })

    assert.equal((await jane.fetch(`${world.url}/echo`)).status, 200)
  })
