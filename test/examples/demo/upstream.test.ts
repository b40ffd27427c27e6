import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { test, type TestContext } from 'node:test'
import { WebSocket } from 'ws'
import { startDemoUpstream } from '../../../examples/demo/upstream.ts'

async function start(t: TestContext) {
  const upstream = await startDemoUpstream({ host: '127.0.0.1', port: 0, provider: new URL('http://127.0.0.1:8081') })
  t.after(() => upstream.close())
  return upstream
}

test('The page shows the name in UTF-8 or Latin-1, and escapes all values', async (t) => {
  const { url } = await start(t)
  const asUtf8 = Buffer.from('Zoë Müller').toString('latin1')

  const page = await (await fetch(url, { headers: { 'x-name': asUtf8, 'x-evil': '<script>alert(1)</script>' } })).text()
  const inLatin1 = await (await fetch(url, { headers: { 'x-name': 'Zoë Müller' } })).text()

  assert.match(page, /<h1>Zoë Müller<\/h1>/)
  assert.match(inLatin1, /<h1>Zoë Müller<\/h1>/)
  assert.match(page, /&lt;script&gt;alert\(1\)&lt;\/script&gt;/)
  assert.equal(page.includes('<script>alert'), false)
})

test('The page lists identity headers first', async (t) => {
  const { url } = await start(t)

  const page = await (await fetch(url, { headers: { 'x-forwarded-for': '10.0.0.1', 'x-groups': 'a%2Cb' } })).text()

  const names = [...page.matchAll(/<th>([^<]+)<\/th>/g)].map(([, name]) => name)
  assert.equal(names[0], 'x-groups')
  assert.ok(names.includes('x-forwarded-for'))
})

test('The page links to the sign-out of the gateway and to the provider', async (t) => {
  const { url } = await start(t)

  const page = await (await fetch(url)).text()

  assert.match(page, /href="\/\.gatehouse\/sign-out"/)
  assert.match(page, /href="http:\/\/127\.0\.0\.1:8081\/"/)
})

test('/echo returns the received request', async (t) => {
  const { url } = await start(t)
  const sent = request(new URL('/echo?a=b', url), { method: 'PUT', headers: { 'X-Twice': ['1', '2'] } })
  sent.end('hällo')

  const [response] = (await once(sent, 'response')) as [AsyncIterable<Buffer>]

  let body = ''
  for await (const chunk of response) body += chunk.toString()
  const echoed = JSON.parse(body) as { method: string; url: string; headers: string[][]; bodyLength: number }
  assert.equal(echoed.method, 'PUT')
  assert.equal(echoed.url, '/echo?a=b')
  assert.equal(echoed.bodyLength, 6)
  assert.deepEqual(
    echoed.headers.filter(([name]) => name === 'X-Twice'),
    [
      ['X-Twice', '1'],
      ['X-Twice', '2'],
    ],
  )
})

for (const [path, status] of [
  ['/status/503', 503],
  ['/status/204', 204],
  ['/static/about.txt', 200],
  ['/api/me', 200],
  ['/nowhere', 404],
] as const) {
  test(`${path} responds with ${status}`, async (t) => {
    const { url } = await start(t)

    const response = await fetch(new URL(path, url))

    assert.equal(response.status, status)
    await response.text()
  })
}

test('Both streams begin with a tick, and close when the application stops', async (t) => {
  const upstream = await startDemoUpstream({ host: '127.0.0.1', port: 0 })
  t.after(() => upstream.close())
  const events = (await fetch(new URL('/events', upstream.url))).body!.getReader()
  const socket = new WebSocket(new URL('/ws', upstream.url))

  const [first] = await once(socket, 'message')
  const { value } = await events.read()
  assert.match(String(first), /^tick 1 at /)
  assert.match(Buffer.from(value!).toString(), /^data: tick 1 at .*\n\n$/)

  const closed = once(socket, 'close')
  const aborted = assert.rejects(async () => {
    while (!(await events.read()).done);
  })
  await upstream.close()
  await Promise.all([closed, aborted])
})
