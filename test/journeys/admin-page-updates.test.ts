import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test, type TestContext } from 'node:test'
import { loadConfig } from '../../src/config/load.ts'
import { openPageStream, whenPart } from '../support/page-stream.ts'
import { replacePauses } from '../support/pauses.ts'
import { until } from '../support/until.ts'
import { secrets, startWorld, type Replica, type WorldOptions } from '../support/world.ts'

async function startWithPage(
  t: TestContext,
  { page = '{}', ...options }: WorldOptions & { readonly page?: string } = {},
) {
  const world = await startWorld(t, { settings: `admin: { listen: "127.0.0.1:0", page: ${page} }`, ...options })
  const [replica] = world.replicas as readonly [Replica]
  return { world, replica, admin: `http://127.0.0.1:${replica.gateway.adminAddress?.port}` }
}

const credentials = (password: string) => ({
  authorization: `Basic ${Buffer.from(`a:${password}`).toString('base64')}`,
})

test('An open page gets what changes: sign-ins, ended sessions with the replicas that confirmed, and charts', async (t) => {
  replacePauses(t, { updateAdminPageMs: 50 })
  const { world, admin } = await startWithPage(t, { store: 'redis', replicas: 2, page: '{ show_claim: email }' })
  const stream = await openPageStream(t, admin)
  assert.deepEqual([stream.status, stream.headers['content-type']], [200, 'text/event-stream'])
  await whenPart(stream, 'sessions', /Nobody is signed in/)
  await whenPart(stream, 'timeline', /Nothing since/)

  const jane = world.browser('jane')
  jane.userAgent = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0'
  await jane.get(`${world.url}/echo`)
  await whenPart(stream, 'sessions', /jane.*Firefox 140 on Windows.*not bound/s)
  await world.provider.endSession(world.provider.sessions()[0]?.sid ?? '')
  world.moveClock(10_000)

  await whenPart(stream, 'timeline', /Logout Token.*ended 1 session.*2 processes in [\d.]+ ms/s)
  await whenPart(stream, 'sessions', /Nobody is signed in/)
  await whenPart(stream, 'charts', /data-chart=/)
  assert.equal(stream.part('timeline').match(/<li>[^<]+\/\d+ \(.{4}\): [\d.]+ ms<\/li>/g)?.length, 2)
  // The end of the session and its Logout Token are one event.
  assert.equal(stream.part('timeline').match(/<tr id=/g)?.length, 1)
  // An update has only what has changed: in the end, the time.
  await until('nothing changes', () =>
    /^data: \{"at":\d+,"parts":\[\{"id":"part-about","html":"[^}]*\}\]\}$/m.test(stream.text()),
  )
})

test('Only the page itself opens its stream, a limited number of times, and it ends with the configuration and the gateway', async (t) => {
  const { replica, admin } = await startWithPage(t)
  const open = (headers = {}) => openPageStream(t, admin, { headers })
  const { host } = new URL(admin)
  const without = { 'sec-fetch-site': undefined }

  const refused = [
    await open({ host: 'evil.example' }),
    await open({ host: `evil.localhost:${host.split(':')[1]}` }),
    await open({ 'sec-fetch-site': 'cross-site' }),
    await open({ 'sec-fetch-site': 'same-site' }),
    await open({ 'sec-fetch-site': 'none' }),
    await open({ 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }),
    await open({ ...without, accept: 'image/png,*/*' }),
    await open({ ...without, origin: 'http://evil.example' }),
  ].map(({ status }) => status)
  const post = await fetch(`${admin}/events`, { method: 'POST', headers: { origin: admin } })

  assert.deepEqual([...refused, post.status], [421, 421, 403, 403, 403, 403, 403, 403, 405])

  const many = await Promise.all(Array.from({ length: 100 }, () => open()))
  await until('the others end', () => many.filter((stream) => stream.isOver()).length === 90)
  const streams = many.filter((stream) => !stream.isOver())
  for (const { text } of many.filter((stream) => stream.isOver()))
    assert.equal(text(), 'retry: 10000\nevent: full\ndata: 10\n\n')
  streams[0]?.close()
  await until('a place is free', async () => {
    const stream = await open()
    await until('it begins', () => stream.text() !== '')
    return stream.text().startsWith('retry: 2000')
  })

  const loaded = loadConfig(replica.file, secrets)
  assert.ok(loaded.ok)
  await replica.gateway.reload(loaded.config)
  await until('the streams end', () => streams.slice(1).every((stream) => stream.isOver()))
  assert.match(streams[1]?.text() ?? '', /event: outdated/)
  const last = await open()
  assert.equal(last.status, 200)
  await replica.stop()
  await until('the last stream ends', () => last.isOver())
})

test('The stream is no way around the token, and guesses through it count', async (t) => {
  const { admin } = await startWithPage(t, { page: '{ token: { env: CLIENT_SECRET } }' })
  const statusWith = async (headers = {}) => (await openPageStream(t, admin, { headers })).status

  assert.deepEqual([await statusWith(), await statusWith(credentials(secrets.CLIENT_SECRET))], [401, 200])
  for (let times = 0; times < 10; times += 1) assert.equal(await statusWith(credentials('hunter2')), 401)
  assert.equal(await statusWith(credentials(secrets.CLIENT_SECRET)), 429)
  const page = await fetch(admin, { headers: credentials(secrets.CLIENT_SECRET) })
  assert.equal(page.status, 429)
})

test('A stream that its client does not read does not delay the others', async (t) => {
  replacePauses(t, { updateAdminPageMs: 50 })
  const { world, admin } = await startWithPage(t)
  const { port, host } = new URL(admin)
  const socket = connect(Number(port), '127.0.0.1')
  t.after(() => socket.destroy())
  socket.pause()
  socket.write(
    `GET /events HTTP/1.1\r\nHost: ${host}\r\nAccept: text/event-stream\r\nSec-Fetch-Site: same-origin\r\n\r\n`,
  )
  const stream = await openPageStream(t, admin)

  await world.browser('jane').get(`${world.url}/echo`)

  await whenPart(stream, 'sessions', /jane/)
})

test('A search finds sessions by anything that the list shows, and shows no other claim', async (t) => {
  const { world, admin } = await startWithPage(t, { store: 'redis', page: '{ show_claim: email }' })
  const [jane, samir] = [world.browser('jane'), world.browser('samir')]
  jane.userAgent = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
  samir.userAgent = '<script>alert(1)</script>'
  await jane.get(`${world.url}/echo`)
  await samir.get(`${world.url}/echo`)
  const sid = world.provider.sessions().find(({ sub }) => sub === 'samir')?.sid ?? ''
  const search = async (query: string) => {
    const html = await (await fetch(`${admin}/?${new URLSearchParams({ q: query }).toString()}`)).text()
    assert.doesNotMatch(html, /<script>alert/)
    return ['jane', 'samir'].filter((person) => html.includes(`<code>${person}</code>`))
  }

  for (const [query, found] of [
    ['', ['jane', 'samir']],
    ['JANE.DOE@', ['jane']],
    ['samir', ['samir']],
    [sid, ['samir']],
    [sid.slice(2, -2), ['samir']],
    ['firefox 140', ['jane']],
    ['on linux', ['jane']],
    ['127.0.0', ['jane', 'samir']],
    ['orders', ['jane', 'samir']],
    ['not bound', ['jane', 'samir']],
    ['bound to a device', []],
    ['"><b>', []],
    // A claim that the page does not show.
    ['groups', []],
  ] as const)
    assert.deepEqual(await search(query), found, query)
})
