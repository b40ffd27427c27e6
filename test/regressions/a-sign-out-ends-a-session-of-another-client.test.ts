import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startWorld } from '../support/world.ts'

test('The cookie of another client with the same Redis and prefix ends no session, whatever the way to sign out', async (t) => {
  const orders = await startWorld(t, { store: 'redis' })
  const wiki = await startWorld(t, { store: 'redis', redis: orders.redis, client_id: 'wiki' })
  const jane = orders.browser()
  await jane.get(`${orders.url}/echo`)
  const cookie = [...jane.cookies].map(([name, { value }]) => `${name}=${value}`).join('; ')
  const sent = (method: string) =>
    fetch(`${wiki.url}/.gatehouse/sign-out`, {
      method,
      redirect: 'manual',
      headers: {
        cookie,
        'sec-fetch-site': 'same-origin',
        'sec-fetch-mode': 'navigate',
        origin: new URL(wiki.url).origin,
      },
    })

  for (const method of ['GET', 'POST']) {
    const response = await sent(method)
    assert.ok(response.status < 400, `${method}: ${response.status}`)
    assert.equal((await jane.fetch(`${orders.url}/echo`)).status, 200, `after ${method}`)
  }
})
