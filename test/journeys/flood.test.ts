// Slow: 11 s, clients send as fast as they can
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { RawClient } from '../proxy/support.ts'
import { startWorld, type World } from '../support/world.ts'

async function statusOf(url: string, options: Parameters<typeof request>[1] = {}, body?: string): Promise<number> {
  const sent = request(url, { agent: false, ...options })
  sent.end(body)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  response.resume()
  await once(response, 'close')
  return response.statusCode ?? 0
}

const form = { 'content-type': 'application/x-www-form-urlencoded' }

for (const [what, ask, responses] of [
  ['sign-ins', ({ url }) => statusOf(`${url}/.gatehouse/sign-in`), [303, 429]],
  ['callbacks', ({ url }) => statusOf(`${url}/.gatehouse/callback?state=x&code=y`), [400, 429]],
  [
    'logout tokens',
    ({ url }) =>
      statusOf(`${url}/.gatehouse/backchannel-logout`, { method: 'POST', headers: form }, 'logout_token=x.y.z'),
    [400, 429],
  ],
  ['cookies', ({ url }) => statusOf(`${url}/echo`, { headers: { cookie: `gatehouse=${'A'.repeat(64)}` } }), [401]],
] satisfies readonly (readonly [string, (world: World) => Promise<number>, number[]])[])
  test(`A signed-in person is served while other clients at the same address send ${what}`, async (t) => {
    const rates = 'sign_ins: 20/m, callbacks: 20/m, refused_logout_tokens: 20/m'
    const world = await startWorld(t, { store: 'redis', settings: `limits: { per_client: { ${rates} } }` })
    const jane = world.browser()
    await jane.get(`${world.url}/echo`)
    let isOver = false
    const seen = new Set<number>()
    const stranger = async () => {
      while (!isOver) seen.add(await ask(world))
    }

    const flood = Promise.all(Array.from({ length: 20 }, stranger))
    const statuses: number[] = []
    while (statuses.length < 100) statuses.push((await jane.fetch(`${world.url}/echo`)).status)
    isOver = true
    await flood

    assert.deepEqual([...new Set(statuses)], [200])
    assert.deepEqual([...seen].sort(), responses)
  })

test('A signed-in person is served while other clients send heads and forms that never end', async (t) => {
  const world = await startWorld(t, { settings: 'limits: { headers_timeout: 1s, body_idle_timeout: 1s }' })
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  const port = Number(new URL(world.url).port)
  const post = 'POST /.gatehouse/backchannel-logout HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\nlogout'

  const slow = Array.from({ length: 300 }, (_, number) =>
    new RawClient(t, port).send(number % 2 === 0 ? 'GET / HTTP/1.1\r\nHost: h\r\nX-Slow' : post),
  )
  const ended = Promise.all(slow.map((client) => client.untilClosed()))
  const statuses: number[] = []
  while (statuses.length < 50) statuses.push((await jane.fetch(`${world.url}/echo`)).status)

  assert.deepEqual([...new Set(statuses)], [200])
  for (const response of await ended) assert.match(response, /^HTTP\/1\.1 408 /)
})
