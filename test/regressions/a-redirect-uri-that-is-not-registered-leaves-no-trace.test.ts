import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startWorld } from '../support/world.ts'

const linesOf = ({ replicas }: Awaited<ReturnType<typeof startWorld>>) =>
  (replicas[0]?.log ?? []).filter(({ message }) => message === 'sign_in.none_returned').map(({ fields }) => fields)

test('When no browser comes back from the provider, the log has the redirect URI to register, once', async (t) => {
  const world = await startWorld(t, { provider: { redirect_uris: ['http://127.0.0.1/other'] } })
  const jane = world.browser()

  const page = await jane.get(`${world.url}/orders`)
  assert.match(page.body, /redirect_uri/)
  assert.deepEqual(linesOf(world), [])
  for (let again = 0; again < 3; again += 1) {
    world.moveClock(6_000 * (again + 1))
    await jane.get(`${world.url}/orders`)
  }

  const [line, ...others] = linesOf(world)
  assert.deepEqual(others, [])
  assert.match(String(line?.['hint']), new RegExp(`register ${world.url}/\\.gatehouse/callback as a redirect URI`))
})

test('When one browser has come back, a sign-in that does not end leaves no line', async (t) => {
  const world = await startWorld(t)
  await world.browser().get(`${world.url}/orders`)
  world.moveClock(60_000)
  await world.browser('samir').send(`${world.url}/.gatehouse/sign-in`)
  world.moveClock(120_000)
  await world.browser('samir').send(`${world.url}/.gatehouse/sign-in`)
  assert.deepEqual(linesOf(world), [])
})
