import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { Agent, interceptors, request } from 'undici'
import { startWorld, type World } from '../support/world.ts'

/** An application that marks every response as public. */
async function startBoastfulUpstream(t: TestContext): Promise<URL> {
  const server = createServer((req, res) => {
    res.setHeader('Cache-Control', 'public, max-age=600')
    res.end(`for ${req.headers['x-remote-user'] ?? 'anybody'}`)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
}

/** A shared cache in front of the gateway (RFC 9111), implemented by undici. */
function sharedCache(t: TestContext) {
  const agent = new Agent().compose(interceptors.cache({ type: 'shared' }))
  t.after(() => agent.destroy())
  return async (url: string, cookie = '') => {
    const { headers, body } = await request(url, { dispatcher: agent, headers: cookie === '' ? {} : { cookie } })
    return { text: await body.text(), wasKept: headers['age'] !== undefined }
  }
}

async function cookies(world: World): Promise<[jane: string, samir: string]> {
  const people = [world.browser('jane'), world.browser('samir')] as const
  for (const person of people) await person.get(`${world.url}/page`)
  return [people[0].cookieHeader, people[1].cookieHeader]
}

test('A shared cache never stores the page of a signed-in person, whatever the application says', async (t) => {
  const world = await startWorld(t, {
    upstream: await startBoastfulUpstream(t),
    upstreamSettings: 'rules: [{ path: /open/*, access: public }, { path: /maybe/*, access: optional }]',
  })
  const [jane, samir] = await cookies(world)
  const get = sharedCache(t)
  const ask = async (path: string, cookie?: string) => {
    const { text, wasKept } = await get(`${world.url}${path}`, cookie)
    return wasKept ? `${text}, kept` : text
  }

  assert.deepEqual([await ask('/page', jane), await ask('/page', samir)], ['for jane', 'for samir'])
  assert.deepEqual([await ask('/maybe/page'), await ask('/maybe/page', jane)], ['for anybody', 'for jane'])
  assert.equal(await ask('/maybe/page', samir), 'for samir')
  // The cache is one.
  assert.deepEqual(
    [await ask('/open/page', jane), await ask('/open/page', samir)],
    ['for anybody', 'for anybody, kept'],
  )
})

test('With cache: no_store, not even the browser stores a page', async (t) => {
  const world = await startWorld(t, {
    upstream: await startBoastfulUpstream(t),
    upstreamSettings: 'cache: no_store\n    rules: [{ path: /open/*, access: public }]',
  })
  const jane = world.browser()
  await jane.get(`${world.url}/page`)

  assert.equal((await jane.fetch(`${world.url}/page`)).headers['cache-control'], 'no-store')
  assert.equal((await jane.fetch(`${world.url}/open/page`)).headers['cache-control'], 'public, max-age=600')
})

test('No cache stores a response that the gateway makes itself', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)

  for (const [path, status] of [
    ['/echo', 401],
    ['/.gatehouse/session', 401],
    ['/.gatehouse/signed-out', 200],
    ['/.gatehouse/callback', 401],
    ['/.gatehouse/elsewhere', 404],
    ['/%zz', 400],
  ] as const) {
    const response = await world.browser().fetch(`${world.url}${path}`)
    assert.deepEqual([response.status, response.headers['cache-control']], [status, 'no-store'], path)
  }
  for (const [path, status] of [
    ['/echo', 303],
    ['/.gatehouse/callback', 400],
  ] as const) {
    const response = await world.browser().send(`${world.url}${path}`)
    assert.deepEqual([response.status, response.headers['cache-control']], [status, 'no-store'], path)
  }
  assert.equal((await jane.fetch(`${world.url}/.gatehouse/session`)).headers['cache-control'], 'no-store')
})
