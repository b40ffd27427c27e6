import assert from 'node:assert/strict'
import { test } from 'node:test'
import { httpUpstream, RawClient } from '../proxy/support.ts'
import { startWorld, type World } from '../support/world.ts'

// The request that Java's HttpClient sends.
const offer = [
  'Connection: Upgrade, HTTP2-Settings',
  'Upgrade: h2c',
  'HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAA',
]

const request = (line: string, fields: readonly string[] = [], content = '') =>
  [`${line} HTTP/1.1`, 'Host: 127.0.0.1', ...offer, ...fields, `Content-Length: ${content.length}`, '', content].join(
    '\r\n',
  )

const responseTo = (t: Parameters<typeof startWorld>[0], { url }: World, bytes: string) =>
  new RawClient(t, Number(new URL(url).port)).send(bytes).untilClosed()

test('A Logout Token in a request that offers h2c ends the session', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  const [session] = world.provider.sessions()
  const form = `logout_token=${await world.provider.logoutToken({ sid: session?.sid ?? '', sub: 'jane' })}`
  const type = 'Content-Type: application/x-www-form-urlencoded'

  const response = await responseTo(t, world, request('POST /.gatehouse/backchannel-logout', [type], form))

  assert.match(response, /^HTTP\/1\.1 200 OK\r\n/)
  assert.equal((await jane.fetch(`${world.url}/echo`)).status, 401)
})

test("The gateway's own endpoints respond to a request that offers h2c", async (t) => {
  const world = await startWorld(t)

  assert.match(await responseTo(t, world, request('GET /.gatehouse/session')), /^HTTP\/1\.1 401 Unauthorized\r\n/)
})

test('The application gets the content of a request that offers h2c, and not the offer', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)

  const response = await responseTo(t, world, request('POST /echo', [`Cookie: ${jane.cookieHeader}`], 'hello'))

  assert.match(response, /^HTTP\/1\.1 200 OK\r\n[^]*"bodyLength": ?5/)
  assert.doesNotMatch(response, /h2c|http2-settings/i)
})

for (const [what, settings, expected] of [
  ['a request like any other, with its content', '', /^HTTP\/1\.1 200 OK\r\n[^]*"bodyLength": ?5/],
  ['an upgrade where an upstream lists it', 'upgrade: [websocket, custom]', /^HTTP\/1\.1 400 /],
] as const)
  test(`A request that offers another protocol is ${what}`, async (t) => {
    const world = await startWorld(t, { upstreamSettings: settings })
    const jane = world.browser()
    await jane.get(`${world.url}/echo`)

    const bytes = request('POST /echo', [`Cookie: ${jane.cookieHeader}`], 'hello').replace('h2c', 'custom/1')

    // A tunnel has no content before it.
    assert.match(await responseTo(t, world, bytes), expected)
  })

test('Bytes that follow a request with an offer of h2c are not read as another request', async (t) => {
  const asked: (string | undefined)[] = []
  let response = () => {}
  let arrive = () => {}
  const firstArrives = new Promise<void>((resolve) => (arrive = resolve))
  const upstream = await httpUpstream(t, (req, res) => {
    asked.push(req.url)
    if (req.url !== '/first') return void res.end()
    response = () => void res.end('first')
    arrive()
  })
  const world = await startWorld(t, {
    upstream: new URL(`http://127.0.0.1:${upstream.port}`),
    upstreamSettings: 'rules: [{ path: /*, access: public }]',
  })
  const content = 'GET /content HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'
  const client = new RawClient(t, Number(new URL(world.url).port))

  client.send(`${request('GET /first')}POST /second HTTP/1.1\r\nHost: h\r\nContent-Length: ${content.length}\r\n\r\n`)
  await firstArrives
  client.send(content)
  await fetch(`${world.url}/elsewhere`)
  response()

  assert.match(
    await client.untilClosed(),
    /^HTTP\/1\.1 200 OK\r\n(?:.+\r\n)*?Connection: close\r\n(?:.+\r\n)*\r\nfirst$/,
  )
  assert.deepEqual(asked, ['/first', '/elsewhere'])
})

test('Bytes that follow a request with an offer of h2c and an unknown expectation are not read as another request', async (t) => {
  const asked: (string | undefined)[] = []
  const upstream = await httpUpstream(t, (req, res) => {
    asked.push(req.url)
    res.end()
  })
  const world = await startWorld(t, {
    upstream: new URL(`http://127.0.0.1:${upstream.port}`),
    upstreamSettings: 'rules: [{ path: /*, access: public }]',
  })
  const content = 'GET /content HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'
  const client = new RawClient(t, Number(new URL(world.url).port))

  const first = request('GET /first', ['Expect: 200-ok'])
  client.send(`${first}POST /second HTTP/1.1\r\nHost: h\r\nContent-Length: ${content.length}\r\n\r\n`)
  await client.until(/ 417 /)
  client.send(content)

  assert.match(await client.untilClosed(), /^HTTP\/1\.1 417 (?:(?!HTTP)[^])*\r\nConnection: close\r\n(?:(?!HTTP)[^])*$/)
  await fetch(`${world.url}/elsewhere`)
  assert.deepEqual(asked, ['/elsewhere'])
})
