import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import { test, type TestContext } from 'node:test'
import { Redis } from 'ioredis'
import { request } from 'undici'
import { exposition } from '../../src/observe/exposition.ts'
import type { LogFields } from '../../src/observe/log.ts'
import { ReadBuffer } from '../../src/wire/read-buffers.ts'
import { navigation, type Browser, type Visit } from '../support/browser.ts'
import { startFormApplication, type FormApplication, type ReceivedContent } from '../support/form-application.ts'
import { form, goOn, press, submit, typed } from '../support/form-browser.ts'
import { freePort } from '../support/free-port.ts'
import { parseMetrics } from '../support/metrics.ts'
import { until } from '../support/until.ts'
import { startWorld, type World, type WorldOptions } from '../support/world.ts'

/** A world with the form application, whose sessions end after an idle minute. */
async function startForms(t: TestContext, options: WorldOptions = {}) {
  const application = await startFormApplication(t)
  const world = await startWorld(t, { upstream: application.url, session: 'idle_timeout: 1m', ...options })
  return { world, application }
}

/** The browser signs in, and its session ends: its idle time is over, or the provider ends it. */
async function signedOut(world: World, person = 'jane'): Promise<Browser> {
  const browser = world.browser(person)
  assert.equal((await browser.get(`${world.url}/forms`)).status, 200)
  if (world.redis === undefined) world.moveClock(61_000)
  else for (const { sid } of world.provider.sessions()) await world.provider.endSession(sid)
  return browser
}

/** The one request that the application received. */
function onlyOne({ received }: FormApplication): ReceivedContent {
  const [first, ...more] = received
  return more.length === 0 && first !== undefined ? first : assert.fail(`${received.length} requests`)
}

for (const store of ['memory', 'redis'] as const) {
  test(`A form that meets an expired session is sent once after the sign-in, byte for byte (${store})`, async (t) => {
    const { world, application } = await startForms(t, { store })
    const jane = await signedOut(world)

    const page = await goOn(jane, await submit(jane, world.url))

    assert.equal(page.status, 200)
    assert.match(page.body, /You had to sign in before it could be sent to 127\.0\.0\.1:\d+\/orders\./)
    assert.ok(page.body.includes(`Form (POST, ${typed.length} bytes)`))
    assert.doesNotMatch(page.body, /S%C3%A4ge|Säge|Zeilen/)
    assert.deepEqual(application.received, [])

    const sent = await press(jane, page, 'Send now')

    assert.equal(sent.status, 200)
    assert.equal(sent.url, `${world.url}/orders?new=1`)
    assert.match(sent.body, /Thank you, jane/)
    const { content, url, person, headers } = onlyOne(application)
    assert.deepEqual([content.toString(), url, person], [typed, '/orders?new=1', 'jane'])
    assert.equal(headers['content-type'], 'application/x-www-form-urlencoded')
    assert.equal(headers['content-length'], String(typed.length))
    assert.equal(headers['referer'], `${world.url}/forms`)
    assert.doesNotMatch(String(headers['cookie'] ?? ''), /gatehouse/)
  })
}

test('The application gets a multipart form with a file exactly as it was typed, in many parts', async (t) => {
  const { world, application } = await startForms(t, { store: 'redis' })
  const jane = await signedOut(world)
  const type = 'multipart/form-data; boundary="x y"'
  const file = Array.from({ length: 300_000 }, (_, n) => String.fromCharCode(32 + (n % 90))).join('')
  const body = `--x y\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n${file}\r\n--x y--\r\n`
  const headers = { 'content-type': type, 'content-language': 'de' }

  const page = await goOn(jane, await submit(jane, world.url, { path: '/upload', body, headers }))
  assert.match(page.body, /Form that may contain files \(POST, 300\.1 kB\)/)
  await press(jane, page, 'Send now')

  const { content, headers: received } = onlyOne(application)
  assert.equal(content.toString() === body, true)
  assert.equal(received['content-type'], type)
  assert.equal(received['content-language'], 'de')
})

test('A form without Content-Length is kept, and a form without content too', async (t) => {
  const { world, application } = await startForms(t)
  const jane = await signedOut(world)

  const chunked = await submitInChunks(jane, world.url, ['item=', 'saw', '&note=x'])
  await press(jane, await goOn(jane, chunked), 'Send now')
  world.moveClock(61_000)
  const empty = await goOn(jane, await submit(jane, world.url, { path: '/delete', body: '' }))
  assert.match(empty.body, /Form without content \(POST\)/)
  await press(jane, empty, 'Send now')

  assert.deepEqual(
    application.received.map(({ url, content, headers }) => [url, content.toString(), headers['content-length']]),
    [
      ['/orders?new=1', 'item=saw&note=x', '15'],
      ['/delete', '', '0'],
    ],
  )
})

test('A form that arrives slowly is not overwritten by the content of other clients', async (t) => {
  const { world, application } = await startForms(t)
  const jane = await signedOut(world)
  const half = 'x'.repeat(50_000)
  async function* halves() {
    yield half
    // The gateway reads the first half in the meantime, and waits for more before it stores a part.
    for (let turns = 50; turns > 0; turns -= 1) await new Promise((resolve) => setImmediate(resolve))
    for (const buffer of Array.from({ length: 40 }, () => ReadBuffer.take(false))) {
      buffer.memory.fill('!')
      buffer.giveBack()
    }
    yield half
  }
  const length = { 'content-length': '100000' }

  await press(jane, await goOn(jane, await submitInChunks(jane, world.url, halves(), length)), 'Send now')

  assert.ok(onlyOne(application).content.equals(Buffer.from(half + half)))
})

test('Neither a reload, nor Back, nor a second click sends a form again', async (t) => {
  const { world, application } = await startForms(t)
  const jane = await signedOut(world)
  const page = await goOn(jane, await submit(jane, world.url))

  const visits = await Promise.all(Array.from({ length: 5 }, () => press(jane, page, 'Send now')))
  const reload = await goOn(jane, await press(jane, page, 'Send now'))
  const back = await jane.get(page.url)

  assert.equal(onlyOne(application).content.toString(), typed)
  assert.equal(visits.filter(({ status }) => status === 200).length, 1)
  for (const { body } of [reload, back]) assert.match(body, /What you entered has already been sent\./)

  // Without its cookies, such a request is not the content of a form either.
  for (const name of [...jane.cookies.keys()].filter((each) => each.includes('-kept-'))) jane.cookies.delete(name)
  assert.match((await goOn(jane, await press(jane, page, 'Send now'))).body, /There is nothing to send any more\./)
  assert.equal(application.received.length, 1)
})

test('A person can decline: the form is deleted, and the browser returns to the page of the form', async (t) => {
  const { world, application } = await startForms(t)
  const jane = await signedOut(world)
  const page = await goOn(jane, await submit(jane, world.url))

  const declined = await press(jane, page, 'Do not send')

  assert.equal(declined.status, 303)
  assert.equal(declined.headers['location'], '/forms')
  assert.match((await goOn(jane, await press(jane, page, 'Do not send'))).body, /There is nothing to send any more\./)
  assert.match((await goOn(jane, await press(jane, page, 'Send now'))).body, /There is nothing to send any more\./)
  assert.deepEqual(application.received, [])
  assert.equal([...jane.cookies.keys()].filter((name) => name.includes('-kept-')).length, 0)
})

test('Malformed cookies beside that of a form do not keep its person from it', async (t) => {
  const { world, application } = await startForms(t)
  const jane = await signedOut(world)
  const page = await goOn(jane, await submit(jane, world.url))
  for (const name of ['gatehouse-kept-12345678', 'gatehouse-kept-', 'gatehouse-kept-x!'])
    for (const value of ['junk', `${'x'.repeat(24)}.${'x'.repeat(39)}`]) {
      jane.cookies.set(name, { value, path: '/' })
      assert.match((await jane.get(page.url)).body, /Do you want to send what you entered/, `${name}=${value}`)
    }

  await press(jane, page, 'Send now')

  assert.equal(onlyOne(application).content.toString(), typed)
})

test('A form whose content is incomplete in Redis is not sent, and takes no place any more', async (t) => {
  const { world, application } = await startForms(t, { store: 'redis' })
  const jane = await signedOut(world)
  const keys = await keptKeys(t, world)
  const page = await goOn(jane, await submit(jane, world.url))
  const redis = new Redis(world.redis?.port ?? assert.fail(), '127.0.0.1')
  t.after(() => redis.disconnect())
  const [key = ''] = (await keys()).filter((each) => /:k:[^:]+$/.test(each))
  assert.equal(await redis.hset(key, '0', 'other bytes'), 0)

  const refused = await goOn(jane, await press(jane, page, 'Send now'))

  assert.match(refused.body, /There is nothing to send any more\./)
  assert.deepEqual(await keys(), [])
  assert.deepEqual(application.received, [])
})

test('Another signed-in person who has the cookie of a form can neither send nor decline it', async (t) => {
  const { world, application } = await startForms(t)
  const jane = await signedOut(world)
  const page = await goOn(jane, await submit(jane, world.url))
  const samir = world.browser('samir')
  await samir.get(`${world.url}/forms`)
  for (const [name, cookie] of jane.cookies) if (name.includes('-kept-')) samir.cookies.set(name, cookie)

  for (const button of ['Do not send', 'Send now'] as const)
    assert.equal(
      (await press(samir, page, button)).headers['location'],
      new URL(page.url).pathname + new URL(page.url).search,
    )

  assert.deepEqual(application.received, [])
  assert.deepEqual(audited(world, 'kept_request.declined'), [])
  assert.match((await press(jane, page, 'Send now')).body, /Thank you, jane/)
})

for (const how of ['in the same tab', 'in another tab'] as const) {
  test(`Another person's sign-in ${how} deletes the form, and a page says so without its content`, async (t) => {
    const { world, application } = await startForms(t)
    const jane = await signedOut(world)
    const first = await submit(jane, world.url)
    for (const { sid } of world.provider.sessions()) world.provider.expireSession(sid)
    const samir = world.browser('samir')
    for (const [name, cookie] of jane.cookies) if (name.startsWith('gatehouse')) samir.cookies.set(name, cookie)

    const page = how === 'in the same tab' ? await goOn(samir, first) : await samir.get(`${world.url}/forms`)

    assert.match(page.body, /What another person entered was discarded\./)
    const shown = page.body.replace(/<style>[^]*<\/style>/, '')
    assert.doesNotMatch(shown, /orders|item|S%C3%A4ge|jane/i)
    assert.equal((await samir.get(`${world.url}/forms`)).status, 200)
    assert.equal([...samir.cookies.keys()].filter((name) => name.includes('-kept-')).length, 0)

    const [kept] = [...jane.cookies.keys()].filter((name) => name.includes('-kept-'))
    for (const browser of [samir, jane]) {
      browser.cookies.set(String(kept), jane.cookies.get(String(kept)) ?? assert.fail())
      const id = String(kept).slice(-8)
      const order = {
        path: '/orders?new=1',
        body: `gatehouse-kept-request=${id}\r\n`,
        headers: { 'content-type': 'text/plain' },
      }
      await goOn(browser, await submit(browser, world.url, order))
    }
    assert.deepEqual(application.received, [])
    assert.equal(audited(world, 'kept_request.discarded')[0]?.['sub'], 'samir')
  })
}

for (const [why, submission, text, status = 401] of [
  ['it is too large', { body: `item=${'x'.repeat(1024 * 1024)}` }, /too large to be saved/],
  [
    'a page of another site sent it',
    { headers: { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' } },
    /a page of another site sent it/,
  ],
  [
    'a page of another origin of this site sent it',
    { headers: { 'sec-fetch-site': 'same-site' } },
    /a page of another site sent it/,
  ],
  [
    'its type is unknown',
    { headers: { 'content-type': 'application/x-strange' } },
    /content of this type cannot be saved/,
  ],
  ['the browser never signed in here', { headers: { cookie: 'gatehouse-person=forged' } }, /it is unclear whose it is/],
  ['it is in a frame', { headers: { 'sec-fetch-dest': 'iframe' } }, /this page is part of another page/],
  ['the rule says 401', { path: '/api/orders' }, /You have to sign in first\. Go back/],
] as const) {
  test(`A form is not kept because ${why}: a page says so, and returns to the page of the form`, async (t) => {
    const { world, application } = await startForms(t)
    const jane = await signedOut(world)

    const page = await submit(jane, world.url, submission)

    assert.equal(page.status, status)
    assert.match(page.body, /What you entered was not sent and not saved\./)
    assert.match(page.body, text)
    assert.match(page.body, /href="\/\.gatehouse\/sign-in\?return_to=%2Fforms"/)
    assert.doesNotMatch(page.body, /orders/)
    assert.equal([...jane.cookies.keys()].filter((name) => name.includes('-kept-')).length, 0)
    assert.deepEqual(application.received, [])
  })
}

test('A form that proves too large leaves nothing, and one that fits exactly is kept', async (t) => {
  const { world } = await startForms(t, { store: 'redis', settings: 'kept_requests: { max_size: 100kb }' })
  const jane = await signedOut(world)
  const keys = await keptKeys(t, world)

  const page = await submitInChunks(
    jane,
    world.url,
    Array.from({ length: 11 }, () => 'x'.repeat(10_000)),
  )
  assert.equal(page.status, 401)
  assert.deepEqual(await keys(), [])

  const exact = await goOn(jane, await submit(jane, world.url, { body: 'x'.repeat(102_400) }))
  assert.match(exact.body, /Do you want to send what you entered/)
  assert.equal((await keys()).length, 1)
})

test('A person has eight forms at a time: a page says that the ninth is not saved', async (t) => {
  const { world } = await startForms(t)
  const jane = await signedOut(world)
  for (let form = 0; form < 8; form += 1) assert.notEqual((await submit(jane, world.url)).status, 401)

  const page = await submit(jane, world.url)

  assert.equal(page.status, 401)
  assert.match(page.body, /What you entered was not sent and not saved\./)
  assert.match(page.body, /too many of your forms are saved already/)
})

test('A client that stops in the middle of a form leaves nothing', async (t) => {
  const { world } = await startForms(t, { store: 'redis' })
  const jane = await signedOut(world)
  const keys = await keptKeys(t, world)
  const { host, port } = new URL(world.url)
  const socket = connect(Number(port), '127.0.0.1')
  socket.write(
    `POST /orders HTTP/1.1\r\nHost: ${host}\r\nCookie: ${jane.cookieHeader}\r\nAccept: text/html\r\nOrigin: ${world.url}\r\nContent-Type: text/plain\r\nContent-Length: 200000\r\n\r\n${'x'.repeat(150_000)}`,
  )
  await until('the first part is stored', async () => (await keys()).length > 0)

  socket.destroy()

  await until('nothing is left', async () => (await keys()).length === 0)
})

test('While Redis is away, a page says that the form is not saved, and links to the page of the form', async (t) => {
  const { world, application } = await startForms(t, { store: 'redis' })
  const jane = await signedOut(world)
  await world.redis?.kill()

  for (const cookies of ['all', 'without the session'] as const) {
    if (cookies !== 'all') jane.cookies.delete('gatehouse')
    const page = await submit(jane, world.url)
    assert.equal(page.status, 503, cookies)
    assert.match(page.body, /What you entered was not sent and not saved\./)
    assert.match(page.body, /Sign-in and sessions are not available right now\./)
    assert.match(page.body, /href="\/forms">Try again/)
  }
  assert.deepEqual(application.received, [])
  const lines = world.replicas.flatMap(({ log }) => log.filter(({ message }) => message === 'kept_request.not_kept'))
  assert.deepEqual(
    lines.map(({ level, fields }) => [level, fields['reason']]),
    [
      ['warn', 'unavailable'],
      ['warn', 'unavailable'],
    ],
  )
})

test('With two replicas, one keeps the form and the other sends it', async (t) => {
  const { world, application } = await startForms(t, { store: 'redis', replicas: 2 })
  const jane = await signedOut(world)
  const page = await goOn(jane, await submit(jane, world.url))
  const other = String(world.replicas[1]?.url)
  const id = new URL(page.url).searchParams.get('id')

  const sent = await submit(jane, other, {
    headers: { 'content-type': 'text/plain', host: new URL(world.url).host, origin: world.url },
    body: `gatehouse-kept-request=${id}\r\n`,
  })

  assert.match(sent.body, /Thank you, jane/)
  assert.equal(onlyOne(application).content.toString(), typed)
})

test('An application that cannot be reached does not lose the form: it can be sent again', async (t) => {
  const port = await freePort()
  const { world } = await startForms(t, { upstream: new URL(`http://127.0.0.1:${port}`) })
  const jane = world.browser()
  assert.equal((await jane.get(`${world.url}/forms`)).status, 502)
  world.moveClock(61_000)
  const page = await goOn(jane, await submit(jane, world.url))

  const failed = await press(jane, page, 'Send now')

  assert.equal(failed.status, 502)
  const [, retry = ''] = /href="([^"]*)">Try again/.exec(failed.body) ?? []
  const again = await jane.get(new URL(retry, world.url).href)
  assert.match(again.body, /Do you want to send what you entered/)
})

test('A person without access gets 403 and the form stays; a form is not sent to another host or target', async (t) => {
  const { world, application } = await startForms(t)
  const samir = await signedOut(world, 'samir')
  const page = await goOn(samir, await submit(samir, world.url, { path: '/admin/orders' }))
  assert.match(page.body, /\/admin\/orders/)

  assert.equal((await press(samir, page, 'Send now')).status, 403)
  const id = new URL(page.url).searchParams.get('id')
  const order = { path: '/orders', body: `gatehouse-kept-request=${id}\r\n`, headers: { 'content-type': 'text/plain' } }
  assert.match((await goOn(samir, await submit(samir, world.url, order))).body, /Do you want to send/)
  assert.deepEqual(application.received, [])
})

test('A page of another site can neither send nor decline a form', async (t) => {
  const { world, application } = await startForms(t)
  const jane = await signedOut(world)
  const page = await goOn(jane, await submit(jane, world.url))
  const id = new URL(page.url).searchParams.get('id')
  const elsewhere = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }

  const send = { body: `gatehouse-kept-request=${id}\r\n`, headers: { ...elsewhere, 'content-type': 'text/plain' } }
  assert.equal((await submit(jane, world.url, send)).status, 403)
  const decline = { path: '/.gatehouse/kept-request', body: `id=${id}`, headers: elsewhere }
  assert.equal((await submit(jane, world.url, decline)).status, 403)

  assert.deepEqual(application.received, [])
  assert.match((await jane.get(page.url)).body, /Do you want to send what you entered/)
})

for (const button of ['Send now', 'Do not send'] as const)
  test(`When the session ends before "${button}", its person signs in again, and the form is still there`, async (t) => {
    const { world, application } = await startForms(t)
    const jane = await signedOut(world)
    const page = await goOn(jane, await submit(jane, world.url))
    world.moveClock(61_000)

    const again = await goOn(jane, await press(jane, page, button))

    assert.match(again.body, /Do you want to send what you entered/)
    assert.deepEqual(application.received, [])
    await press(jane, again, 'Send now')
    assert.equal(onlyOne(application).content.toString(), typed)
  })

test('A form is kept for its time only', async (t) => {
  const { world, application } = await startForms(t, { settings: 'kept_requests: { keep_for: 2m }' })
  const jane = await signedOut(world)
  const page = await goOn(jane, await submit(jane, world.url))
  assert.match(page.body, /Do you want to send what you entered/)

  world.moveClock(121_000)

  assert.match((await goOn(jane, await press(jane, page, 'Send now'))).body, /There is nothing to send any more\./)
  assert.deepEqual(application.received, [])
})

test('After a sign-out, and with max_size 0b, the gateway keeps no form', async (t) => {
  const { world } = await startForms(t)
  const jane = world.browser()
  await jane.get(`${world.url}/forms`)
  assert.equal(jane.cookies.has('gatehouse-person'), true)
  await jane.get(`${world.url}/.gatehouse/sign-out`, { headers: { 'sec-fetch-site': 'same-origin' } })
  assert.deepEqual(
    [...jane.cookies.keys()].filter((name) => name.startsWith('gatehouse')),
    [],
  )

  const off = await startForms(t, { settings: 'kept_requests: { max_size: 0b }' })
  const samir = await signedOut(off.world)
  assert.equal(samir.cookies.has('gatehouse-person'), false)
  assert.match((await submit(samir, off.world.url)).body, /What you entered was not sent and not saved\./)
})

test('A 401 response tells a script that its request was not forwarded, and may be repeated after the sign-in', async (t) => {
  const { world } = await startForms(t)
  const jane = await signedOut(world)

  const { status, body } = await jane.fetch(`${world.url}/orders`, { method: 'POST', body: '{}' })

  assert.equal(status, 401)
  assert.equal((JSON.parse(body) as { repeat?: string }).repeat, 'after_sign_in')
})

test('A text of the same length as a send command is forwarded unchanged', async (t) => {
  const { world, application } = await startForms(t)
  const jane = world.browser()
  await jane.get(`${world.url}/forms`)
  const body = 'gatehouse-kept-request:12345678\r\n'

  await submit(jane, world.url, { body, headers: { 'content-type': 'text/plain' } })

  assert.equal(onlyOne(application).content.toString(), body)
})

test('The log has the outcome of each form, and neither content nor secrets', async (t) => {
  const { world } = await startForms(t)
  const jane = await signedOut(world)
  const page = await goOn(jane, await submit(jane, world.url))
  const secrets = [...jane.cookies].filter(([name]) => /-(?:kept|person)/.test(name)).map(([, { value }]) => value)
  await press(jane, page, 'Send now')
  world.moveClock(61_000)
  await press(jane, await goOn(jane, await submit(jane, world.url)), 'Do not send')

  const log = world.replicas[0]?.log ?? []
  const messages = log.map(({ message }) => message).filter((message) => message.startsWith('kept_request.'))
  assert.deepEqual(messages, ['kept_request.kept', 'kept_request.sent', 'kept_request.kept', 'kept_request.declined'])
  const [sent] = audited(world, 'kept_request.sent')
  assert.deepEqual([sent?.['sub'], sent?.['path'], sent?.['bytes']], ['jane', '/orders', typed.length])
  const text = JSON.stringify(log)
  for (const secret of [...secrets, 'ge+%26', 'zwei']) assert.equal(text.includes(secret), false)
  const metrics = parseMetrics(exposition(world.replicas[0]?.metrics.collect() ?? []))
  for (const [outcome, count] of [
    ['kept', 2],
    ['sent', 1],
    ['declined', 1],
    ['discarded', 0],
  ] as const)
    assert.equal(metrics.value(`gatehouse_kept_requests_total{outcome="${outcome}"}`), count)
})

/** The fields of the audit events of one kind. */
function audited(world: World, event: string): readonly LogFields[] {
  return world.replicas.flatMap(({ log }) => log.filter(({ message }) => message === event).map(({ fields }) => fields))
}

/** Returns a function that lists the keys of kept requests in Redis. */
async function keptKeys(t: TestContext, world: World): Promise<() => Promise<readonly string[]>> {
  const redis = new Redis(world.redis?.port ?? assert.fail(), '127.0.0.1')
  t.after(() => redis.disconnect())
  return () => redis.keys('*:k:*')
}

/**
 * Submits a form in parts. Without `Content-Length` among the fields, its length is not known
 * before.
 */
async function submitInChunks(
  browser: Browser,
  url: string,
  chunks: readonly string[] | AsyncIterable<string>,
  fields: Readonly<Record<string, string>> = {},
): Promise<Visit> {
  const to = `${url}/orders?new=1`
  const headers = {
    ...navigation,
    ...form,
    'sec-fetch-site': 'same-origin',
    cookie: browser.cookieHeader,
    referer: `${url}/forms`,
    ...fields,
  }
  const response = await request(to, { method: 'POST', headers, body: Readable.from(chunks) })
  for (const line of [response.headers['set-cookie'] ?? []].flat()) {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
    if (value !== '') browser.cookies.set(name, { value, path: '/' })
  }
  return { url: to, status: response.statusCode, headers: response.headers, body: await response.body.text() }
}
