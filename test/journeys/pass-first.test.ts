import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { test, type TestContext } from 'node:test'
import { httpUpstream } from '../proxy/support.ts'
import { startWorld, type World, type WorldOptions } from '../support/world.ts'

const fromThisSite = { 'sec-fetch-site': 'same-origin' }
const logout = `logout: { paths: [/logout, { path: /session, methods: [DELETE] }], pass_first: true, cookies: [sid] }
    response_timeout: 300ms`

type Seen = { readonly line: string; readonly person: unknown; readonly body: string }

/** A world whose application records the requests for its logout link. */
async function worldWith(
  t: TestContext,
  respond: (req: IncomingMessage, res: ServerResponse) => unknown,
  options: WorldOptions = {},
): Promise<{ world: World; seen: Seen[] }> {
  const seen: Seen[] = []
  const { port } = await httpUpstream(t, async (req, res) => {
    const { method = '', url = '', headers } = req
    if (url !== '/logout' && !(url === '/session' && method === 'DELETE'))
      return res.setHeader('set-cookie', 'sid=1').end(url)
    let body = ''
    for await (const chunk of req) body += String(chunk)
    seen.push({ line: `${method} ${url}`, person: headers['x-remote-user'], body })
    return respond(req, res)
  })
  const upstream = new URL(`http://127.0.0.1:${port}`)
  return { world: await startWorld(t, { upstreamSettings: logout, upstream, ...options }), seen }
}

const loggedOut = (_req: IncomingMessage, res: ServerResponse) =>
  res.writeHead(302, { location: '/bye', 'set-cookie': ['theme=dark', 'sid=2', 'gatehouse-session=forged'] }).end()

test('The application sees its logout link first, then the person is signed out everywhere', async (t) => {
  const { world, seen } = await worldWith(t, loggedOut)
  const jane = world.browser()
  await jane.get(`${world.url}/`)

  const first = await jane.send(`${world.url}/logout`, { headers: fromThisSite })
  const page = await jane.get(`${world.url}/.gatehouse/sign-out`, { headers: fromThisSite })

  assert.deepEqual(seen, [{ line: 'GET /logout', person: 'jane', body: '' }])
  assert.equal(first.status, 303)
  assert.equal(first.headers['location'], '/.gatehouse/sign-out')
  assert.deepEqual(first.headers['set-cookie'], ['theme=dark', 'sid=2'], 'not the cookies of the gateway')
  assert.match(page.body, /You are signed out/)
  assert.deepEqual(world.provider.sessions(), [])
  assert.ok(!jane.cookies.has('sid'))
  assert.equal((await jane.fetch(`${world.url}/`)).status, 401)
})

for (const [what, respond] of [
  ['an error', (_req, res) => res.writeHead(500).end('broken')],
  ['no response', () => {}],
  ['a closed connection', (req) => req.socket.destroy()],
  [
    'an event stream without end',
    (_req, res) => res.writeHead(200, { 'content-type': 'text/event-stream' }).write(':'),
  ],
  ['a page that never ends', (_req, res) => res.writeHead(200).write('…')],
] satisfies readonly (readonly [string, (req: IncomingMessage, res: ServerResponse) => unknown])[])
  test(`The person is signed out when the application responds to its logout link with ${what}`, async (t) => {
    const { world, seen } = await worldWith(t, respond)
    const jane = world.browser()
    await jane.get(`${world.url}/`)

    const response = await jane.fetch(`${world.url}/logout`, { method: 'POST', body: 'a=1', headers: fromThisSite })

    assert.deepEqual(seen, [{ line: 'POST /logout', person: 'jane', body: 'a=1' }])
    assert.deepEqual(JSON.parse(response.body), { signed_out: true, provider: 'ended' })
    assert.deepEqual(world.provider.sessions(), [])
    assert.equal((await jane.fetch(`${world.url}/`)).status, 401)
  })

test('A script gets the cookies of the application and of the sign-out together', async (t) => {
  const { world } = await worldWith(t, loggedOut)
  const jane = world.browser()
  await jane.get(`${world.url}/`)

  const response = await jane.fetch(`${world.url}/session`, { method: 'DELETE', headers: fromThisSite })

  const names = [response.headers['set-cookie'] ?? []].flat().map((cookie) => cookie.split(';', 1)[0])
  assert.deepEqual(names.slice(0, 2), ['theme=dark', 'sid=2'])
  assert.ok(names.includes('sid='), names.join())
})

test('A logout link with a method leaves other methods to the application', async (t) => {
  const { world, seen } = await worldWith(t, loggedOut)
  const jane = world.browser()
  await jane.get(`${world.url}/`)

  const response = await jane.fetch(`${world.url}/session`, { headers: fromThisSite })

  assert.equal(response.status, 200)
  assert.equal(response.body, '/session')
  assert.deepEqual(seen, [])
})

test('Another site cannot make the application end its own session', async (t) => {
  const { world, seen } = await worldWith(t, loggedOut)
  const jane = world.browser()
  await jane.get(`${world.url}/`)

  await jane.get(`${world.url}/logout`, { headers: { 'sec-fetch-site': 'cross-site' } })
  await jane.fetch(`${world.url}/logout`, { method: 'POST', headers: { 'sec-fetch-site': 'cross-site' } })
  await jane.fetch(`${world.url}/logout`, {
    headers: { ...fromThisSite, 'sec-fetch-dest': 'image', 'sec-fetch-mode': 'no-cors' },
  })

  assert.deepEqual(seen, [])
  assert.equal((await jane.fetch(`${world.url}/`)).status, 200)
})

test('The application does not see its logout link without a session', async (t) => {
  const { world, seen } = await worldWith(t, loggedOut)

  const page = await world.browser().get(`${world.url}/logout`, { headers: fromThisSite })

  assert.match(page.body, /You are signed out/)
  assert.deepEqual(seen, [])
})
