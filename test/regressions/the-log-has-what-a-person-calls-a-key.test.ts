import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeKey, signedIn, startKeyWorld } from '../support/key-world.ts'
import { press } from '../support/session-page.ts'

test('What a person calls a key is on the page of this person, and not in the log', async (t) => {
  const world = await startKeyWorld(t)
  const jane = await signedIn(world)
  const name = 'Phone of jane.doe@example.com'
  await makeKey(jane, world, { name })

  await press(jane, await jane.get(world.page), new RegExp(`^End the key ${name}$`))

  const logged = world.replicas.flatMap(({ log, access }) => [...log, ...access])
  assert.deepEqual(
    logged.flatMap((line) => ('message' in line && String(line['message']).startsWith('key.') ? line['message'] : [])),
    ['key.created', 'key.ended'],
  )
  assert.doesNotMatch(JSON.stringify(logged), /Phone of jane|jane\.doe/)
})
