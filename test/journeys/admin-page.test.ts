// Slow: 6 s, replicas with each kind of store
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test, type TestContext } from 'node:test'
import { Agent, request } from 'undici'
import { Browser } from '../support/browser.ts'
import { childrenOf, startCommand } from '../support/command.ts'
import { freePort } from '../support/free-port.ts'
import { prepareGateway } from '../support/gateway-process.ts'
import { openPageStream, whenPart } from '../support/page-stream.ts'
import { gatehouseWith } from '../support/pauses.ts'
import { startRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { secrets, startWorld, type Replica, type World, type WorldOptions } from '../support/world.ts'

interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
}

async function ask(url: string, options: Parameters<typeof request>[1] = {}): Promise<Answer> {
  const { statusCode, headers, body } = await request(url, { dispatcher: new Agent(), ...options })
  return { status: statusCode, headers, body: await body.text() }
}

function adminOf({ gateway }: Replica): string {
  return `http://127.0.0.1:${gateway.adminAddress?.port}`
}

async function startWithPage(
  t: TestContext,
  { page = '{}', ...options }: WorldOptions & { readonly page?: string } = {},
) {
  const world = await startWorld(t, { settings: `admin: { listen: "127.0.0.1:0", page: ${page} }`, ...options })
  const [replica] = world.replicas as readonly [Replica]
  return { world, replica, admin: adminOf(replica) }
}

async function signedIn(world: World, person: string): Promise<Browser> {
  const browser = world.browser(person)
  await browser.get(`${world.url}/echo`)
  return browser
}

/** The forms of the buttons on a page, by the person whose session they end. */
function ordersOn(page: string): Map<string, string> {
  const forms = page.matchAll(/name="order" value="([\w-]+)">.*?aria-label="End the session of (\S+), /g)
  return new Map([...forms].map(([, order = '', person = '']) => [person, order]))
}

function press(admin: string, order: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  return ask(`${admin}/sessions/end`, {
    method: 'POST',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      'sec-fetch-site': 'same-origin',
      ...headers,
    },
    body: new URLSearchParams({ order }).toString(),
  })
}

/** The cells of a table's rows, without markup. */
function rowsOf(page: string, section: string): string[][] {
  const [, html = ''] = new RegExp(`<h2 id="${section}">(.*?)</section>`, 's').exec(page) ?? []
  return [...html.matchAll(/<tr[^>]*><th scope="row"[^>]*>(.*?)<\/tr>/gs)].map(([, row = '']) =>
    row
      .replaceAll(/<wbr>|<\/?span[^>]*>|<button.*?<\/button>/g, '')
      .split(/<\/t[hd]>/)
      .map((cell) => cell.replaceAll(/<[^>]*>/g, ' ').trim()),
  )
}

for (const store of ['memory', 'redis'] as const)
  test(`An administrator sees the sessions and ends one with a button, on every replica: ${store}`, async (t) => {
    const { world, replica, admin } = await startWithPage(t, { store, replicas: store === 'redis' ? 2 : 1 })
    const [jane, samir] = [await signedIn(world, 'jane'), await signedIn(world, 'samir')]
    const page = (await ask(`${admin}/`)).body
    assert.deepEqual(
      rowsOf(page, 'sessions').map(([person]) => person),
      ['samir', 'jane'],
    )

    const response = await press(admin, ordersOn(page).get('jane') ?? '')

    assert.equal(response.status, 200)
    assert.match(response.body, /The session has ended.*It has ended at the provider too\./s)
    for (const { url } of world.replicas) {
      assert.equal((await jane.fetch(`${url}/echo`)).status, 401)
      assert.equal((await samir.fetch(`${url}/echo`)).status, 200)
    }
    assert.deepEqual(
      world.provider.sessions().map(({ sub }) => sub),
      ['samir'],
    )
    const event = replica.log.find(({ message }) => message === 'session.ended')
    const { by, sub, client, request: id } = event?.fields ?? {}
    assert.deepEqual([by, sub, client], ['administrator', 'jane', '127.0.0.1'])
    assert.match(String(id), /^[\w-]{16}$/)
    const again = await press(admin, ordersOn(page).get('jane') ?? '')
    assert.equal(again.status, 404)
    assert.match(again.body, /has ended already/)
    assert.equal(ordersOn((await ask(`${admin}/`)).body).size, 1)
  })

test('An administrator finds sessions by person and by provider session, and the page shows no secret', async (t) => {
  const { world, admin } = await startWithPage(t)
  const [jane] = [await signedIn(world, 'jane'), await signedIn(world, 'samir')]
  const sid = world.provider.sessions().find(({ sub }) => sub === 'samir')?.sid ?? ''

  const pages = await Promise.all(
    ['/', '/?sub=jane&sid=', `/?sid=${sid}`, `/?sub=jane&sid=${sid}`, '/?sub=%3Cb%3Enobody'].map((path) =>
      ask(admin + path),
    ),
  )

  assert.deepEqual(
    pages.map(({ body }) => [...ordersOn(body).keys()].toSorted()),
    [['jane', 'samir'], ['jane'], ['samir'], [], []],
  )
  assert.match(pages[4]?.body ?? '', /No session matches*/s)
  assert.match(pages[4]?.body ?? '', /value="&lt;b&gt;nobody"/)
  // What a form sends is sealed, and can look like anything.
  const everything = pages
    .map(({ body }) => body.replaceAll(/<style>.*?<\/style>|name="order" value="[\w-]+"/gs, ''))
    .join()
  assert.doesNotMatch(everything, /@|eyJ/)
  for (const secret of [jane.cookies.get('gatehouse')?.value ?? '', ...Object.values(secrets)])
    assert.ok(secret !== '' && !everything.includes(secret))
})

test('The page shows the provider, its keys, the upstreams and the last logouts with the sessions that they ended', async (t) => {
  const port = await freePort()
  const { world, admin } = await startWithPage(t, {
    upstreamSettings: `rules: [{ path: /static/*, access: public }]
  gone: { url: "http://127.0.0.1:${port}", path: /gone/, rules: [{ path: /*, access: public }] }`,
  })
  await signedIn(world, 'jane')
  await ask(`${world.url}/gone/x`)
  await ask(`${world.url}/static/about.txt`)
  const [session] = world.provider.sessions()
  await world.provider.endSession(session?.sid ?? '')
  await world.postLogoutToken({ logout_token: 'not.a.token' })

  const { body } = await ask(`${admin}/`)

  assert.match(body, new RegExp(`<dt>Issuer</dt><dd>${world.provider.issuer}</dd><dt>Discovery</dt><dd>found</dd>`))
  assert.match(body, /<dt>Algorithm<\/dt><dd>RS256<\/dd>/)
  assert.deepEqual(
    rowsOf(body, 'provider').map(([, type, , , since]) => [
      type,
      /^\d{4}-\d\d-\d\d .*less than 1 min ago$/.test(since ?? ''),
    ]),
    [['RSA', true]],
  )
  const [orders, gone] = rowsOf(body, 'upstreams')
  assert.equal(orders?.[1], world.upstream.origin)
  assert.match(orders?.[2] ?? '', /^yes, in \d+\.\d ms$/)
  assert.deepEqual(orders?.slice(3, 8), ['2', '0', '0', '0', 'none'])
  assert.match(gone?.[2] ?? '', /^no: connect ECONNREFUSED/)
  assert.deepEqual(gone?.slice(3, 7), ['1', '0', '1', '0'])
  assert.match(gone?.[7] ?? '', /less than 1 min ago +ERR_UPSTREAM_UNREACHABLE request +[\w-]{16}$/)
  const [refused, obeyed] = rowsOf(body, 'timeline')
  assert.deepEqual(refused?.slice(1, 3), ['Logout Token', 'not verified'])
  assert.match(refused?.[3] ?? '', /^refused : /)
  assert.equal(obeyed?.[3], 'ended 1 session')
  assert.match(obeyed?.[2] ?? '', new RegExp(`^sid +${session?.sid}`))
})

test('The page names an unreachable provider and an unreachable store, and shows everything else', async (t) => {
  const { world, admin } = await startWithPage(t, { store: 'redis', providerStartsDown: true })
  await world.redis?.kill()

  const { status, body } = await ask(`${admin}/`)

  assert.equal(status, 200)
  assert.match(body, /<strong>not found yet<\/strong>/)
  assert.match(body, /<dt>Fault<\/dt><dd><strong>the provider \S+ could not be discovered/)
  assert.match(body, /<strong>the session store at \S+ is not available/)
  assert.equal(rowsOf(body, 'upstreams').length, 1)
})

test('The page does not report a session as ended when the store rejects the write', async (t) => {
  const { world, admin } = await startWithPage(t, { store: 'redis', redisSettings: 'timeout: 500ms' })
  await signedIn(world, 'jane')
  const [order = ''] = ordersOn((await ask(`${admin}/`)).body).values()
  await world.redis?.kill()

  const response = await press(admin, order)

  assert.equal(response.status, 503)
  assert.match(response.body, /The session has not ended everywhere/)
})

test('The page is served only under the address itself, under no other host name', async (t) => {
  const { admin } = await startWithPage(t, { page: '{ hosts: [gateway.internal.example.com] }' })
  const statusFor = async (host: string, path = '/') => (await ask(admin + path, { headers: { host } })).status

  for (const host of ['127.0.0.1', 'localhost:9090', '[::1]:9090', '10.0.0.7', 'Gateway.Internal.example.com:443'])
    assert.equal(await statusFor(host), 200, host)
  for (const host of [
    'evil.example',
    'evil.example:9090',
    '127.0.0.1.evil.example',
    'localhost.evil.example',
    'x.localhost',
    'internal.example.com',
  ])
    assert.equal(await statusFor(host), 421, host)
  // Probes use host names that no configuration lists.
  assert.equal(await statusFor('gatehouse.default.svc', '/live'), 200)
})

test('The page requires a token, and the log names the address that sends an invalid token, not the token', async (t) => {
  const { replica, admin } = await startWithPage(t, { page: '{ token: { env: CLIENT_SECRET } }' })
  const asked = (credentials?: string) =>
    ask(`${admin}/`, {
      headers:
        credentials === undefined ? {} : { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` },
    })

  const without = await asked()
  const wrong = await asked('admin:hunter2')
  const right = await asked(`whoever:${secrets.CLIENT_SECRET}`)
  const end = await press(admin, 'x')

  assert.deepEqual(
    [without, wrong, right, end].map(({ status }) => status),
    [401, 401, 200, 401],
  )
  assert.match(String(without.headers['www-authenticate']), /^Basic realm="/)
  assert.doesNotMatch(without.body + wrong.body, /session/i)
  const told = replica.log.filter(({ message }) => message === 'admin.wrong_token')
  assert.deepEqual(
    told.map(({ level, fields }) => [level, fields]),
    [['warn', { peer: '127.0.0.1' }]],
  )
  for (const path of ['/live', '/ready', '/metrics']) assert.equal((await ask(admin + path)).status, 200)
})

test('An address that guesses tokens has to wait, even with the right token, while another address is admitted', async (t) => {
  const { world, replica, admin } = await startWithPage(t, { page: '{ token: { env: CLIENT_SECRET } }' })
  const asked = (password: string, localAddress = '127.0.0.1') =>
    ask(`${admin}/`, {
      headers: { authorization: `Basic ${Buffer.from(`admin:${password}`).toString('base64')}` },
      dispatcher: new Agent({ localAddress }),
    })

  for (let times = 0; times < 10; times += 1) assert.equal((await asked('hunter2')).status, 401)
  let guess = await asked('hunter3')
  // On a busy machine, some time of the limit has passed meanwhile.
  while (guess.status === 401) guess = await asked('hunter3')
  const right = await asked(secrets.CLIENT_SECRET)
  const elsewhere = await asked(secrets.CLIENT_SECRET, '127.0.0.2')
  world.moveClock(7_000)
  const later = await asked(secrets.CLIENT_SECRET)

  assert.deepEqual(
    [guess, right, elsewhere, later].map(({ status }) => status),
    [429, 429, 200, 200],
  )
  assert.match(String(guess.headers['retry-after']), /^[1-6]$/)
  const limit = replica.log.find(({ message }) => message === 'limit.reached')
  assert.deepEqual([limit?.fields?.['limit'], limit?.fields?.['client']], ['admin.page.token', '127.0.0.1'])
})

test('A form that arrives slowly has the same time limit as a form for the endpoints', async (t) => {
  const { admin } = await startWithPage(t, {
    settings: 'limits: { body_idle_timeout: 1s }\nadmin: { listen: "127.0.0.1:0", page: {} }',
  })
  const { port, host } = new URL(admin)
  const socket = connect(Number(port), '127.0.0.1')
  t.after(() => socket.destroy())
  let response = ''
  socket.on('data', (chunk: Buffer) => (response += chunk.toString()))
  socket.write(
    `POST /sessions/end HTTP/1.1\r\nHost: ${host}\r\nSec-Fetch-Site: same-origin\r\n` +
      'Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 500\r\n\r\norder=',
  )

  await once(socket, 'close')

  assert.match(response, /^HTTP\/1\.1 408 /)
})

for (const store of ['memory', 'redis'] as const)
  test(`The list of sessions is sorted, searched and paged over all sessions of the store: ${store}`, async (t) => {
    const { world, admin } = await startWithPage(t, { store })
    await signedIn(world, 'samir')
    for (let times = 0; times < 60; times += 1) await signedIn(world, 'jane')
    world.moveClock(60_000)
    await signedIn(world, 'zoe')
    const listed = async (query: string) => {
      const { body } = await ask(`${admin}/${query}`)
      const [, caption, pages] = /<caption>(\d+ sessions?)<.*?(Page \d of \d|<\/section>)/s.exec(body) ?? []
      return { caption, pages, people: rowsOf(body, 'sessions').map(([person]) => person), body }
    }

    const first = await listed('')
    assert.deepEqual([first.caption, first.pages], ['62 sessions', 'Page 1 of 3'])
    assert.deepEqual([first.people.length, first.people[0]], [25, 'zoe'])
    assert.match(first.body, /aria-sort="descending"><a href="\/\?sort=-began&amp;page=1#sessions">Signed in</)
    assert.match(first.body, /<li><a href="\/\?sort=began&amp;page=2#sessions">Next page<\/a><\/li><\/ul>/)

    const pages = [first, await listed('?page=2'), await listed('?page=3')]
    const keys = pages.flatMap(({ body }) => [...body.matchAll(/<tr id="session-([^"]+)"/g)].map(([, key]) => key))
    assert.deepEqual([keys.length, new Set(keys).size], [62, 62])
    assert.equal((await listed('?page=99')).pages, 'Page 3 of 3')
    assert.doesNotMatch(pages[2]?.body ?? '', /Next page/)

    for (const [sort, page, person] of [
      ['person', 1, 'jane'],
      ['person', 3, 'zoe'],
      ['-person', 1, 'zoe'],
      ['-began', 3, 'zoe'],
      ['constructor', 1, 'zoe'],
    ] as const) {
      const { people } = await listed(`?sort=${sort}&page=${page}`)
      assert.equal(people.at(page === 1 ? 0 : -1), person, sort)
    }
    const found = await listed('?q=samir&sort=person')
    assert.deepEqual([found.caption, found.people], ['1 session', ['samir']])
    assert.match(found.body, /<a href="\/\?q=samir&amp;sort=-person&amp;page=1#sessions">Person</)
    assert.equal((await listed('?sub=jane')).caption, '60 sessions')
  })

test('Only a form of the page itself ends a session', async (t) => {
  const { world, admin } = await startWithPage(t)
  const jane = await signedIn(world, 'jane')
  const page = (await ask(`${admin}/`)).body
  const [order = ''] = ordersOn(page).values()
  // Another character, whatever the order is.
  const changed = `${order.slice(0, -3)}${order.at(-3) === 'A' ? 'B' : 'A'}${order.slice(-2)}`
  const host = new URL(admin).host
  const without = { 'sec-fetch-site': undefined as never }

  const refused = [
    await ask(`${admin}/sessions/end?order=${order}`),
    await press(admin, order, { 'sec-fetch-site': 'cross-site' }),
    await press(admin, order, { 'sec-fetch-site': 'same-site' }),
    await press(admin, order, { 'sec-fetch-site': 'none' }),
    await press(admin, order, without),
    await press(admin, order, { ...without, origin: 'null' }),
    await press(admin, order, { ...without, origin: 'http://127.0.0.1:1' }),
    await press(admin, order, { host: 'evil.example' }),
    await press(admin, order, { 'content-type': 'text/plain' }),
    await press(admin, ''),
    await press(admin, changed),
    await press(admin, `${order}${'A'.repeat(8192)}`),
    await ask(`${admin}/`, { method: 'POST', headers: { 'sec-fetch-site': 'same-origin' }, body: `order=${order}` }),
    await ask(`${admin}/`, { headers: { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' } }),
    await ask(`${admin}/`, {
      headers: { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
    }),
  ].map(({ status }) => status)
  world.moveClock(61 * 60_000)
  const late = await press(admin, order)
  world.moveClock(-61 * 60_000)

  assert.deepEqual(refused, [405, 403, 403, 403, 403, 403, 403, 421, 400, 400, 400, 400, 405, 403, 403])
  assert.equal(late.status, 400)
  assert.equal((await jane.fetch(`${world.url}/echo`)).status, 200)
  assert.equal((await press(admin, order, { ...without, origin: `http://${host}` })).status, 200)
  assert.equal((await jane.fetch(`${world.url}/echo`)).status, 401)
})

test('The page is not cached, cannot be framed and runs no script but its own', async (t) => {
  const { admin } = await startWithPage(t)

  const { headers, body } = await ask(`${admin}/`)
  const head = await ask(`${admin}/`, { method: 'HEAD' })

  assert.match(
    String(headers['content-security-policy']),
    /^default-src 'none'; style-src 'sha256-[^']+'; script-src 'sha256-[^']+'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'$/,
  )
  assert.deepEqual(
    [
      'cache-control',
      'x-content-type-options',
      'referrer-policy',
      'cross-origin-resource-policy',
      'cross-origin-opener-policy',
    ].map((name) => headers[name]),
    ['no-store', 'nosniff', 'same-origin', 'same-origin', 'same-origin'],
  )
  assert.equal(headers['access-control-allow-origin'], undefined)
  const [, script = '', ...others] = body.split(/<script>|<\/script>/)
  const hash = createHash('sha256').update(script).digest('base64')
  assert.ok(String(headers['content-security-policy']).includes(`script-src 'sha256-${hash}'`))
  assert.doesNotMatch(others.join(), /<script/i)
  assert.doesNotMatch(body.replace(script, ''), /javascript:| on\w+=/i)
  assert.deepEqual([head.status, head.body], [200, ''])
})

test('Without admin.page there is no page, and the address says how to enable it', async (t) => {
  const { admin } = await startWithPage(t, { settings: 'admin: { listen: "127.0.0.1:0" }' })

  const responses = [await ask(`${admin}/`), await press(admin, 'x')]

  assert.deepEqual(
    responses.map(({ status }) => status),
    [404, 405],
  )
  assert.match(responses[0]?.body ?? '', /admin\.page opens a page/)
})

test('The page shows two workers as one gateway, and names a worker that does not respond', async (t) => {
  const redis = await startRedis(t)
  const around = await prepareGateway(t, {
    store: `{ redis: { url: "${redis.url}" } }`,
    settings: 'workers: 2',
    page: '{}',
  })
  const gateway = startCommand(t, ['run', '--config', around.file], {
    env: around.env,
    program: gatehouseWith({ workerReportsMs: 700, updateAdminPageMs: 200 }),
  })
  await gateway.said('gatehouse is ready')
  const jane = new Browser('jane')
  await jane.get(`${around.url}/`)
  const visit = async () => (await ask(`${around.url}/`, { headers: { cookie: jane.cookieHeader } })).status
  for (let times = 0; times < 9; times += 1) assert.equal(await visit(), 200)
  const refusal = {
    method: 'POST',
    body: 'logout_token=x',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  } as const
  for (let times = 0; times < 4; times += 1) await ask(`${around.url}/.gatehouse/backchannel-logout`, refusal)

  // Both replicas show the same.
  for (let times = 0; times < 4; times += 1) {
    const page = (await ask(`${around.adminUrl}/`)).body
    assert.match(page, /2 processes/)
    assert.match(page, /found, by 2 of 2 processes/)
    assert.equal(rowsOf(page, 'upstreams')[0]?.[3], '10')
    assert.equal(rowsOf(page, 'timeline').length, 4)
  }
  const stream = await openPageStream(t, around.adminUrl)
  await whenPart(stream, 'about', /2 processes/)
  const [hanging = 0, other = 0] = childrenOf(gateway.pid)
  t.after(() => {
    try {
      process.kill(hanging, 'SIGCONT')
    } catch {
      // It has ended.
    }
  })
  process.kill(hanging, 'SIGSTOP')
  await whenPart(stream, 'about', new RegExp(`A process does not respond \\(pid ${hanging}\\)`))
  for (let times = 0; times < 3; times += 1) {
    const [page, live, ready] = await Promise.all(['/', '/live', '/ready'].map((path) => ask(around.adminUrl + path)))
    assert.match(page?.body ?? '', new RegExp(`A process does not respond \\(pid ${hanging}\\):.*is missing here`))
    assert.equal(ordersOn(page?.body ?? '').size, 1)
    assert.deepEqual([live?.status, ready?.status], [200, 200])
  }
  process.kill(other, 'SIGSTOP')
  const none = await Promise.all(['/', '/live', '/ready'].map((path) => ask(around.adminUrl + path)))
  for (const pid of [hanging, other]) process.kill(pid, 'SIGCONT')
  assert.deepEqual(
    none.map(({ status }) => status),
    [200, 503, 503],
  )
  assert.match(none[0]?.body ?? '', /2 processes do not respond.*no worker process responds/s)
  assert.doesNotMatch((none[0]?.body ?? '').replace(/<script>.*/s, ''), /promise/i)

  // A form of one worker is valid at the other.
  const orders = await whenOne(async () => [...ordersOn((await ask(`${around.adminUrl}/`)).body).values()])
  for (let times = 0; times < 2; times += 1) await press(around.adminUrl, orders[0] ?? '')
  assert.equal(await visit(), 401)

  // The page says which worker confirmed an end and when, and stays open when one dies.
  await whenPart(stream, 'timeline', /an administrator.*2 processes in /s)
  await new Browser('samir').get(`${around.url}/`)
  const [order = ''] = await whenOne(async () => [...ordersOn((await ask(`${around.adminUrl}/`)).body).values()])
  process.kill(hanging, 'SIGSTOP')
  await press(around.adminUrl, order)
  await whenPart(stream, 'timeline', /1 process has not confirmed/)
  process.kill(hanging, 'SIGCONT')
  await whenPart(stream, 'timeline', new RegExp(`2 processes in \\d{3,} ms.*/${hanging} \\(.{4}\\): \\d{3,} ms`, 's'))
  assert.equal(/not confirmed/.exec(stream.part('timeline')), null)

  process.kill(hanging, 'SIGKILL')
  await gateway.said('worker.died')
  await whenPart(stream, 'about', /1 process,|2 processes,/)
  assert.equal(stream.isOver(), false)
  assert.match((await ask(`${around.adminUrl}/`)).body, /id="part-charts"/)
})

async function whenOne(look: () => Promise<string[]>): Promise<string[]> {
  let found: string[] = []
  await until('jane is on the page', async () => (found = await look()).length === 1)
  return found
}

test('A form that breaks off is not logged as a fault of the gateway', async (t) => {
  const { replica, admin } = await startWithPage(t)
  const { port, host } = new URL(admin)
  const head = `Host: ${host}\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/x-www-form-urlencoded`
  const socket = connect(Number(port), '127.0.0.1')
  socket.write(`POST /sessions/end HTTP/1.1\r\n${head}\r\nContent-Length: 500\r\nExpect: 100-continue\r\n\r\norder=`)
  // It is being read.
  await once(socket, 'data')
  socket.destroy()
  await once(socket, 'close')
  for (let turn = 0; turn < 3; turn += 1) assert.equal((await ask(`${admin}/live`)).status, 200)

  assert.deepEqual(
    replica.log.filter(({ message }) => message === 'request.failed'),
    [],
  )
})

for (const store of ['memory', 'redis'] as const)
  test(`A program ends the sessions of a person by sub, email or sid, as often as it asks: ${store}`, async (t) => {
    const { world, replica, admin } = await startWithPage(t, { store, page: '{ token: { env: SESSION_KEY } }' })
    const endPerson = async (person: unknown, headers: Readonly<Record<string, string>> = {}) => {
      const { status, body } = await ask(`${admin}/sessions/end`, {
        method: 'POST',
        headers: {
          authorization: `Basic ${btoa(`:${secrets.SESSION_KEY}`)}`,
          'content-type': 'application/json',
          ...headers,
        },
        body: JSON.stringify(person),
      })
      return { status, body: JSON.parse(body.startsWith('{') ? body : '{}') as Readonly<Record<string, unknown>> }
    }
    const isIn = async (browser: Browser) => (await browser.fetch(`${world.url}/echo`)).status === 200
    const samir = await signedIn(world, 'samir')

    for (const name of ['sub', 'email', 'sid'] as const) {
      const jane = world.browser('jane')
      await jane.signInAgain(`${world.url}/echo`)
      const sid = world.provider.sessions().find(({ sub }) => sub === 'jane')?.sid ?? ''
      const person = { sub: 'jane', email: 'Jane.Doe@example.com', sid }[name]

      assert.deepEqual(await endPerson({ [name]: person }), {
        status: 200,
        body: { ended: 1, at_provider: { ended: 1 } },
      })

      assert.equal(await isIn(jane), false)
      assert.deepEqual(await endPerson({ [name]: person }), { status: 200, body: { ended: 0, at_provider: {} } })
    }

    const underWay = world.browser('jane')
    const callback = await underWay.until(`${world.url}/echo`, '/.gatehouse/callback')
    assert.equal((await endPerson({ sub: 'jane' })).status, 200)
    await underWay.get(callback)
    assert.equal(await isIn(underWay), false, 'a sign-in that was under way')

    for (const wrong of [{}, { sub: 'jane', sid: 'x' }, { sub: '' }, { sub: ['jane'] }, { key: 'x' }, ['jane'], 'jane'])
      assert.equal((await endPerson(wrong)).status, 400, JSON.stringify(wrong))
    assert.equal((await endPerson({ sub: 'samir' }, { authorization: '' })).status, 401)
    assert.equal((await endPerson({ sub: 'samir' }, { 'sec-fetch-site': 'cross-site' })).status, 403)
    assert.equal((await endPerson({ sub: 'samir' }, { origin: 'https://other.example' })).status, 403)
    const withoutType = await ask(`${admin}/sessions/end`, { method: 'POST', body: '{ "sub": "samir" }' })
    assert.match(withoutType.body, /A program sends Content-Type: application\/json\./)
    assert.equal((await endPerson({ sub: 'samir' }, { host: 'other.example' })).status, 421)
    assert.equal(await isIn(samir), true)
    // A sign-in may also end when it begins so soon after the ending by e-mail that the clocks
    // cannot tell.
    const ended = replica.log.filter(({ fields }) => fields?.['by'] === 'administrator')
    assert.ok(ended.length === 3 || ended.length === 4, JSON.stringify(ended))
    for (const { message, fields } of ended)
      assert.deepEqual([message, fields?.['sub'], fields?.['client']], ['session.ended', 'jane', '127.0.0.1'])
  })
