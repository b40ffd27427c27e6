import assert from 'node:assert/strict'
import { type AddressInfo, createServer } from 'node:net'
import { test } from 'node:test'
import type { Browser } from '../support/browser.ts'
import { startWorld, type World } from '../support/world.ts'

interface Echo {
  readonly method: string
  readonly url: string
  readonly headers: readonly (readonly [string, string])[]
  readonly bodyLength: number
}

async function signedIn(world: World): Promise<Browser> {
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  return jane
}

function valuesOf(body: string, wanted: string): string[] {
  const { headers } = JSON.parse(body) as Echo
  return headers.filter(([name]) => name.toLowerCase().replaceAll('_', '-') === wanted).map(([, value]) => value)
}

for (const headers of [
  { 'X-Remote-User': 'forged' },
  { 'x-remote-user': 'forged' },
  { X_Remote_User: 'forged' },
  { 'X-Remote-User': 'forged', connection: 'X-Remote-User' },
  { connection: 'close, x-remote-user' },
]) {
  test(`The application gets one X-Remote-User, with the value of the gateway: ${JSON.stringify(headers)}`, async (t) => {
    const world = await startWorld(t)
    const jane = await signedIn(world)

    const { body } = await jane.fetch(`${world.url}/echo`, { headers })

    assert.deepEqual(valuesOf(body, 'x-remote-user'), ['jane'])
  })
}

for (const name of ['X-Forwarded-User', 'x_forwarded_user', 'X-FORWARDED-USER'])
  test(`The application gets one X-Forwarded-User where it is configured, with the value of the gateway: ${name}`, async (t) => {
    const world = await startWorld(t, { headers: 'X-Forwarded-User: sub' })
    const jane = await signedIn(world)

    const { body } = await jane.fetch(`${world.url}/echo`, { headers: { [name]: 'forged' } })

    assert.deepEqual(valuesOf(body, 'x-forwarded-user'), ['jane'])
  })

test('A request on a public path carries no identity, whatever the client sends', async (t) => {
  const world = await startWorld(t, { upstreamSettings: 'rules: [{ path: /*, access: public }]' })

  const { body } = await world.browser().fetch(`${world.url}/echo`, { headers: { 'X-Remote-User': 'forged' } })

  assert.deepEqual(valuesOf(body, 'x-remote-user'), [])
})

test('The gateway replaces forwarding headers of the client with its own', async (t) => {
  const world = await startWorld(t)
  const jane = await signedIn(world)

  const { body } = await jane.fetch(`${world.url}/echo`, {
    headers: {
      'x-forwarded-for': '10.9.9.9',
      'x-forwarded-host': 'evil.example',
      'x-forwarded-proto': 'gopher',
      forwarded: 'for=10.9.9.9',
    },
  })

  assert.deepEqual(valuesOf(body, 'x-forwarded-for'), ['127.0.0.1'])
  assert.deepEqual(valuesOf(body, 'x-forwarded-host'), [new URL(world.url).host])
  assert.deepEqual(valuesOf(body, 'x-forwarded-proto'), ['http'])
  assert.deepEqual(valuesOf(body, 'forwarded'), [])
})

for (const method of ['PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'MKCOL', 'LOCK', 'REPORT']) {
  test(`${method} with content reaches the application unchanged`, async (t) => {
    const world = await startWorld(t)
    const jane = await signedIn(world)

    const { body } = await jane.fetch(`${world.url}/echo?q=1`, { method, body: 'hello' })

    const { method: seen, url, bodyLength } = JSON.parse(body) as Echo
    assert.deepEqual({ method: seen, url, bodyLength }, { method, url: '/echo?q=1', bodyLength: 5 })
  })
}

test('A script without a session gets 401 as a problem document, no redirect and no cookie', async (t) => {
  const world = await startWorld(t)

  const response = await world.browser().fetch(`${world.url}/echo`)

  assert.equal(response.status, 401)
  assert.equal(response.headers['content-type'], 'application/problem+json')
  assert.equal(response.headers['set-cookie'], undefined)
  assert.equal((JSON.parse(response.body) as { sign_in: string }).sign_in, '/.gatehouse/sign-in')
})

test('A page load on a path for scripts also gets 401 when the rule says so', async (t) => {
  const world = await startWorld(t)

  assert.equal((await world.browser().send(`${world.url}/api/me`)).status, 401)
})

test('A person who does not satisfy the rule gets 403, and one who does is admitted', async (t) => {
  const world = await startWorld(t)
  const [jane, samir] = [world.browser('jane'), world.browser('samir')]

  assert.equal((await jane.get(`${world.url}/admin/`)).status, 200)
  assert.equal((await samir.get(`${world.url}/admin/`)).status, 403)
})

test("The gateway's own endpoints never reach the application, in any spelling", async (t) => {
  const world = await startWorld(t, { upstreamSettings: 'rules: [{ path: /*, access: public }]' })

  for (const path of [
    '/.gatehouse/',
    '/.gatehouse/x',
    '/%2egatehouse/x',
    '//.gatehouse/x',
    '/.GATEHOUSE/x',
    '/a/../.gatehouse/x',
    '/.gatehouse;v=1/x',
  ]) {
    const response = await fetch(world.url + path.replace('/a/..', '/a/%2e%2e'))
    assert.ok([400, 404].includes(response.status), `${path}: ${response.status}`)
  }
})

test('An unreachable application causes a 502 that names no address', async (t) => {
  const world = await startWorld(t, { upstream: await nobodyListens() })
  const jane = world.browser()

  const page = await jane.get(`${world.url}/`)

  assert.equal(page.status, 502)
  assert.doesNotMatch(page.body, /ECONN|127\.0\.0\.1|localhost/)
})

test('An application that does not respond in time causes a 504 that names no address', async (t) => {
  const world = await startWorld(t, { upstream: await neverResponds(t), upstreamSettings: 'response_timeout: 300ms' })
  const jane = world.browser()

  const page = await jane.get(`${world.url}/`)

  assert.equal(page.status, 504)
  assert.doesNotMatch(page.body, /127\.0\.0\.1|localhost/)
})

for (const cookie of [
  'gatehouse=',
  'gatehouse=x',
  `gatehouse=${'A'.repeat(64)}`,
  'gatehouse="',
  'gatehouse=a; gatehouse=b',
  `gatehouse=${'%00'.repeat(30)}`,
  ';;;=;',
  '=gatehouse',
]) {
  test(`An invalid session cookie is no session: ${cookie.slice(0, 40)}`, async (t) => {
    const world = await startWorld(t)

    const response = await world.browser().fetch(`${world.url}/echo`, { headers: { cookie } })

    assert.equal(response.status, 401)
  })
}

async function nobodyListens(): Promise<URL> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return new URL(`http://127.0.0.1:${port}`)
}

async function neverResponds(t: { after(done: () => void): void }): Promise<URL> {
  const server = createServer((socket) => socket.on('error', () => {}).resume())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => void server.close())
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
}
