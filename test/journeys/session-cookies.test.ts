import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test, type TestContext } from 'node:test'
import type { Visit } from '../support/browser.ts'
import { commandsSinceStart, type RedisServer } from '../support/redis.ts'
import { type SessionApplication, type Shown, startSessionApplication } from '../support/session-application.ts'
import { startWorld, type World, type WorldOptions } from '../support/world.ts'

async function worldWith(t: TestContext, options: WorldOptions & { readonly names?: string } = {}) {
  const application = await startSessionApplication(t)
  const world = await startWorldFor(t, application, options)
  return { application, world }
}

function startWorldFor(
  t: TestContext,
  application: SessionApplication,
  { names = '[JSESSIONID, kept_*]', ...options }: WorldOptions & { readonly names?: string },
): Promise<World> {
  return startWorld(t, {
    upstream: application.url,
    upstreamSettings: `session_cookies: ${names}
    rules: [{ path: /public/*, access: public }]`,
    ...options,
  })
}

function shown({ status, body }: Visit): Shown {
  assert.equal(status, 200, body)
  return JSON.parse(body) as Shown
}

const setCookies = ({ headers }: Visit) => [headers['set-cookie'] ?? []].flat()
const set = (...cookies: readonly string[]) =>
  `?${cookies.map((cookie) => `set=${encodeURIComponent(cookie)}`).join('&')}`

async function endSession(world: World, person: string): Promise<void> {
  const { sid, sub } = world.provider.sessions().find((session) => session.sub === person) ?? assert.fail(person)
  const logout_token = await world.provider.logoutToken({ sid, sub })
  assert.equal((await world.postLogoutToken({ logout_token })).status, 200)
}

test('The application gets its session cookie, and the browser never does', async (t) => {
  const { world } = await worldWith(t)
  const jane = world.browser()
  assert.equal(shown(await jane.get(`${world.url}/`)).visits, 1)

  const second = await jane.fetch(`${world.url}/`)
  const third = await jane.fetch(`${world.url}/deeper/page`)

  assert.deepEqual([shown(second).visits, shown(third).visits], [2, 3])
  assert.match(shown(third).cookie, /^JSESSIONID=[\w-]+$/)
  assert.deepEqual(
    [...jane.cookies.keys()].filter((name) => /^(?:JSESSIONID|kept_)/.test(name)),
    [],
  )
})

test('Other cookies of the application reach the browser and come back', async (t) => {
  const { world } = await worldWith(t)
  const jane = world.browser()
  await jane.get(`${world.url}/${set('theme=dark; Path=/', 'kept_a=1; Path=/')}`)

  const { cookie } = shown(await jane.fetch(`${world.url}/`))

  assert.match(cookie, /^theme=dark; JSESSIONID=[\w-]+; kept_a=1$/)
  assert.equal(jane.cookies.get('theme')?.value, 'dark')
  assert.equal(jane.cookies.has('kept_a'), false)
})

test('A cookie of that name from the browser never reaches the application', async (t) => {
  const { world, application } = await worldWith(t)
  const zoe = world.browser('zoe')
  await zoe.get(`${world.url}/`)
  const jane = world.browser()

  for (const name of ['JSESSIONID', 'jsessionid', 'kept_x']) {
    jane.cookies.set(name, { value: 'planted', path: '/' })
    await jane.get(`${world.url}/`)
    assert.doesNotMatch(shown(await jane.fetch(`${world.url}/quiet/`)).cookie, /planted/)
  }
  assert.equal(application.begun(), 2)
})

test('The session of the application ends with the session of the person', async (t) => {
  const { world } = await worldWith(t)
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  assert.equal(shown(await jane.fetch(`${world.url}/`)).visits, 2)

  await endSession(world, 'jane')

  await jane.signInAgain(`${world.url}/`)
  assert.equal(shown(await jane.fetch(`${world.url}/`)).visits, 2, 'a new session of the application')
})

test('Another person in the same browser gets a session of their own', async (t) => {
  const { world } = await worldWith(t)
  const samir = world.browser('samir')
  assert.equal(shown(await samir.get(`${world.url}/`)).owner, 'samir')

  const noa = world.browser('noa')
  for (const [name, cookie] of samir.cookies) if (!name.startsWith('demo_provider')) noa.cookies.set(name, cookie)
  await endSession(world, 'samir')
  await noa.signInAgain(`${world.url}/`)

  assert.equal(shown(await noa.fetch(`${world.url}/`)).owner, 'noa')
})

test('Concurrent responses at two replicas lose no cookie', async (t) => {
  const { world } = await worldWith(t, { store: 'redis', replicas: 2 })
  const jane = world.browser()
  await jane.get(`${world.url}/`)

  const names = Array.from({ length: 20 }, (_, index) => `kept_${index}`)
  await Promise.all(
    names.map((name, index) =>
      jane.fetch(`${world.replicas[index % 2]?.url}/quiet/${set(`${name}=${index}; Path=/`)}`),
    ),
  )

  for (const { url } of world.replicas) {
    const { cookie } = shown(await jane.fetch(`${url}/`))
    for (const [index, name] of names.entries()) assert.match(cookie, new RegExp(`\\b${name}=${index}\\b`))
  }
})

test('Only a response that changes a cookie writes to the store', async (t) => {
  const { world } = await worldWith(t, { store: 'redis' })
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  const writes = async () => (await commandsSinceStart(world.redis as RedisServer)).get('hset') ?? 0
  const before = await writes()

  for (let times = 0; times < 5; times += 1) {
    await jane.fetch(`${world.url}/quiet/`)
    await jane.fetch(`${world.url}/quiet/${set('kept_a=1; Path=/; Max-Age=600')}`)
  }

  assert.equal((await writes()) - before, 1)
})

test('The cookies survive a refresh of the tokens', async (t) => {
  const { world } = await worldWith(t)
  world.provider.bend('/oauth/token', (body) => void (body['expires_in'] = 10))
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  world.moveClock(11_000)

  assert.equal(shown(await jane.fetch(`${world.url}/`)).visits, 2)

  assert.ok(world.replicas[0]?.log.some(({ message }) => message === 'session.refreshed'))
})

test('A response with more cookies than are kept is rejected, and no cookie of it is kept', async (t) => {
  const { world } = await worldWith(t)
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  const many = Array.from({ length: 70 }, (_, index) => `kept_${index}=x; Path=/`)
  const large = Array.from({ length: 5 }, (_, index) => `kept_${index}=~4000; Path=/`)

  for (const cookies of [many, large]) {
    const { status, body } = await jane.fetch(`${world.url}/quiet/${set(...cookies)}`)
    assert.deepEqual(
      [status, (JSON.parse(body) as { detail: string }).detail],
      [502, 'The application has set more cookies than can be kept.'],
    )
    assert.match(shown(await jane.fetch(`${world.url}/quiet/`)).cookie, /^JSESSIONID=[\w-]+$/)
  }
  const logged = world.replicas[0]?.log.filter(({ message }) => message === 'upstream.failed') ?? []
  assert.deepEqual(
    logged.map(({ fields }) => [fields['code'], fields['reason']]),
    [
      ['ERR_COOKIES_FULL', '"orders" has set 71 cookies; at most 64 are kept in a session'],
      ['ERR_COOKIES_FULL', '"orders" has set cookies of 20136 bytes; at most 16384 bytes are kept in a session'],
    ],
  )
})

test('A response whose cookie cannot be stored is an error, not a sign-in that is lost', async (t) => {
  let arrived = () => {}
  let goOn = () => {}
  const isWaiting = new Promise<void>((resolve) => (arrived = resolve))
  const mayGoOn = new Promise<void>((resolve) => (goOn = resolve))
  const application = await startSessionApplication(t, async ({ pathname }) => {
    if (pathname !== '/quiet/slow') return
    arrived()
    await mayGoOn
  })
  const world = await startWorldFor(t, application, { store: 'redis', session: 'store_outage_grace: 5m' })
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  const response = jane.fetch(`${world.url}/quiet/slow${set('kept_a=1; Path=/')}`)
  await isWaiting

  await world.redis?.kill()
  goOn()

  const { status, body } = await response
  assert.deepEqual(
    [status, (JSON.parse(body) as { detail: string }).detail],
    [503, 'Sign-in and sessions are not available right now.'],
  )
})

test('A session cookie on a public path is dropped, and the log says so once', async (t) => {
  const { world } = await worldWith(t)
  const anybody = world.browser()

  for (let times = 0; times < 3; times += 1) {
    const visit = await anybody.send(`${world.url}/public/`)
    assert.equal(visit.status, 200)
    assert.deepEqual(setCookies(visit), [])
  }

  const logged = world.replicas[0]?.log.filter(({ message }) => message === 'cookies.not_kept') ?? []
  assert.deepEqual(
    logged.map(({ fields }) => fields['cookies']),
    [['JSESSIONID']],
  )
})

test('With all: true, every cookie of the application stays in the session', async (t) => {
  const { world } = await worldWith(t, { names: '{ all: true }' })
  const jane = world.browser()
  await jane.get(`${world.url}/${set('theme=dark; Path=/')}`)

  assert.match(shown(await jane.fetch(`${world.url}/`)).cookie, /^JSESSIONID=[\w-]+; theme=dark$/)
  assert.deepEqual(
    [...jane.cookies.keys()].filter((name) => /^(?:JSESSIONID|kept_)/.test(name)),
    [],
  )
})

test('A session cookie has the path that the application sees', async (t) => {
  const application = await startSessionApplication(t)
  const world = await startWorld(t, {
    upstream: application.url,
    upstreamSettings: 'path: /wiki\n    strip_path: true\n    session_cookies: [JSESSIONID, kept_*]',
  })
  const jane = world.browser()
  await jane.get(`${world.url}/wiki/${set('kept_a=1; Path=/admin')}`)

  assert.equal(shown(await jane.fetch(`${world.url}/wiki/page`)).visits, 2)
  assert.doesNotMatch(shown(await jane.fetch(`${world.url}/wiki/page`)).cookie, /kept_a/)
  assert.match(shown(await jane.fetch(`${world.url}/wiki/admin/`)).cookie, /kept_a=1/)
})

test('A session cookie with a Domain of the application itself is kept for the public host', async (t) => {
  const { world } = await worldWith(t, {
    upstreamSettings: `session_cookies: [kept_*]
    also_known_as: ['http://wiki.corp:8080']`,
  })
  const jane = world.browser()
  await jane.get(
    `${world.url}/quiet/${set('kept_a=1; Domain=.wiki.corp; Path=/', 'kept_b=1;domain=wiki.corp', 'kept_c=1; Domain=elsewhere.example')}`,
  )

  assert.equal(shown(await jane.fetch(`${world.url}/quiet/`)).cookie, 'kept_b=1; kept_a=1')
  await jane.fetch(`${world.url}/quiet/${set('kept_d=1; Domain=elsewhere.example')}`)

  const logged = world.replicas[0]?.log.filter(({ message }) => message === 'cookies.not_kept') ?? []
  assert.deepEqual(
    logged.map(({ level, fields }) => [level, fields['cookies']]),
    [['warn', ['kept_c']]],
  )
})

test('A session cookie in the response to an upgrade is kept', async (t) => {
  const { world } = await worldWith(t)
  const jane = world.browser()
  await jane.get(`${world.url}/quiet/`)
  const { hostname, port } = new URL(world.url)
  const socket = connect(Number(port), hostname)
  t.after(() => socket.destroy())

  socket.write(
    `GET /ws HTTP/1.1\r\nHost: ${hostname}:${port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nOrigin: ${world.url}\r\nCookie: ${jane.cookieHeader}\r\n\r\n`,
  )
  const [head] = (await once(socket, 'data')) as [Buffer]

  assert.match(head.toString(), /^HTTP\/1\.1 101 /)
  assert.doesNotMatch(head.toString(), /set-cookie/i)
  assert.match(shown(await jane.fetch(`${world.url}/quiet/`)).cookie, /^JSESSIONID=/)
})
