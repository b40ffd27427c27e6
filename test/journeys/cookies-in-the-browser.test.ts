import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Visit } from '../support/browser.ts'
import { JarBrowser } from '../support/jar-browser.ts'
import { commandsSinceStart, type RedisServer } from '../support/redis.ts'
import { type Shown, startSessionApplication } from '../support/session-application.ts'
import { until } from '../support/until.ts'
import { startWorld, type World, type WorldOptions } from '../support/world.ts'

async function worldWith(t: TestContext, options: WorldOptions = {}) {
  const application = await startSessionApplication(t)
  const world = await startWorld(t, {
    upstream: application.url,
    upstreamSettings: `logout: { cookies: [JSESSIONID, 'app_*'] }
    rules: [{ path: /public/*, access: public }, { path: /optional/*, access: optional }]`,
    ...options,
  })
  return { application, world }
}

const set = (...cookies: readonly string[]) =>
  `?${cookies.map((cookie) => `set=${encodeURIComponent(cookie)}`).join('&')}`

function shown({ status, body }: Visit): Shown {
  assert.equal(status, 200, body)
  return JSON.parse(body) as Shown
}

async function signedIn(world: World, person: string, path = '/'): Promise<JarBrowser> {
  const browser = new JarBrowser(person)
  assert.equal((await browser.get(world.url + path)).status, 200)
  return browser
}

async function endAtProvider(world: World, person: string): Promise<void> {
  const { sid, sub } = world.provider.sessions().find((session) => session.sub === person) ?? assert.fail(person)
  assert.equal(
    (await world.postLogoutToken({ logout_token: await world.provider.logoutToken({ sid, sub }) })).status,
    200,
  )
}

/**
 * Signs another person in in the same browser, and returns the first response of the application.
 */
async function signInAs(browser: JarBrowser, person: string, url: string): Promise<[JarBrowser, Visit]> {
  const next = browser.handOver(person)
  let first: Visit | undefined
  await until('signed in', async () => {
    first = await next.get(url)
    return first.status === 200
  })
  return [next, first as Visit]
}

/** How the session of the first person ends. The browser is not told. */
const endings: Readonly<Record<string, (world: World, person: string) => Promise<void>>> = {
  'a Logout Token': endAtProvider,
  'the idle timeout': async (world) => world.moveClock(31 * 60_000),
}

for (const [name, end] of Object.entries(endings))
  test(`After ${name}, the next person in the browser never has the application session of the previous one`, async (t) => {
    const { application, world } = await worldWith(t)
    const samir = await signedIn(world, 'samir', `/deep/page/${set('app_a=1; Path=/deep', 'other=1; Path=/')}`)
    assert.equal(shown(await samir.fetch(`${world.url}/deep/`)).owner, 'samir')

    await end(world, 'samir')
    const [noa, first] = await signInAs(samir, 'noa', `${world.url}/deep/page`)

    assert.equal(shown(first).owner, 'noa')
    assert.doesNotMatch(shown(first).cookie, /JSESSIONID|app_/)
    assert.match(shown(first).cookie, /other=1/)
    assert.equal(shown(await noa.fetch(`${world.url}/deep/page`)).owner, 'noa')
    assert.deepEqual(application.owners().toSorted(), ['noa', 'samir'])
    assert.deepEqual(noa.places, ['JSESSIONID /', 'other /'])
  })

test('A cookie that survives a restart of the browser never reaches the session of another person', async (t) => {
  const { world } = await worldWith(t)
  const samir = await signedIn(
    world,
    'samir',
    `/deep/${set('app_a=of-samir; Path=/deep', 'app_b=of-samir; Path=/deep')}`,
  )
  // The cookie of the gateway has no Max-Age, so the browser forgets it.
  samir.kept = samir.kept.filter(({ name }) => !name.startsWith('gatehouse'))
  assert.ok(samir.places.includes('app_a /deep'))

  const [noa, first] = await signInAs(samir, 'noa', `${world.url}/deep/${set('app_a=of-noa; Path=/deep')}`)

  assert.equal(shown(first).owner, 'noa')
  assert.doesNotMatch(shown(first).cookie, /of-samir/)
  assert.ok(world.replicas[0]?.log.some(({ message }) => message === 'cookies.withheld'))
  const { cookie } = shown(await noa.fetch(`${world.url}/deep/`))
  assert.match(cookie, /app_a=of-noa/)
  assert.doesNotMatch(cookie, /app_b/)
  assert.deepEqual(noa.places, ['JSESSIONID /', 'app_a /deep'])
})

test('A cookie of the previous person for another path never reaches the application', async (t) => {
  const { world } = await worldWith(t)
  const samir = await signedIn(world, 'samir', `/admin/x/${set('JSESSIONID=of-samir; Path=/admin/x')}`)
  assert.match(shown(await samir.fetch(`${world.url}/admin/x/y`)).cookie, /of-samir/)
  await endAtProvider(world, 'samir')

  const [noa, first] = await signInAs(samir, 'noa', `${world.url}/`)

  assert.equal(shown(first).owner, 'noa')
  const second = await noa.fetch(`${world.url}/admin/x/y`)
  assert.doesNotMatch(shown(second).cookie, /of-samir/)
  assert.doesNotMatch(noa.places.join(), /admin/)
  assert.equal(shown(await noa.fetch(`${world.url}/admin/x/y`)).owner, 'noa')
})

test('A sign-out expires cookies with the paths and domains that the application gave them', async (t) => {
  const { world } = await worldWith(t, {
    upstreamSettings: `path: /wiki
    strip_path: true
    logout: { cookies: ['app_*'] }`,
  })
  const cookies = ['app_a=1; Path=/deep/er', 'app_b=1; Path=/; HttpOnly', 'app_c=1', 'stays=1; Path=/']
  const jane = await signedIn(world, 'jane', `/wiki/one/two${set(...cookies)}`)
  assert.deepEqual(jane.places, [
    'JSESSIONID /wiki',
    'app_a /wiki/deep/er',
    'app_b /wiki',
    'app_c /wiki/one',
    'stays /wiki',
  ])

  await jane.fetch(`${world.url}/.gatehouse/sign-out`, { method: 'POST' })

  assert.deepEqual(jane.places, ['JSESSIONID /wiki', 'stays /wiki'])
})

test('The first response after an ending elsewhere expires what the browser sends', async (t) => {
  const { world } = await worldWith(t)
  const jane = await signedIn(
    world,
    'jane',
    `/a/b/${set('app_a=1; Path=/a', 'app_b=1; Path=/a/b/', 'app_c=1; Path=/c')}`,
  )
  await endAtProvider(world, 'jane')

  assert.equal((await jane.fetch(`${world.url}/a/b/c`)).status, 401)

  assert.deepEqual(jane.places, ['app_c /c'])
})

test('On an optional page, the application does not meet a person whose session has ended', async (t) => {
  const { world } = await worldWith(t)
  const jane = await signedIn(world, 'jane')
  assert.equal(shown(await jane.fetch(`${world.url}/optional/`)).owner, 'jane')
  await endAtProvider(world, 'jane')

  const first = await jane.fetch(`${world.url}/optional/`)

  assert.equal(shown(first).owner, '')
  assert.equal(shown(await jane.fetch(`${world.url}/optional/`)).visits, 2, 'the session of nobody stays')
})

test('Only a cookie with a new name, path or domain is written to the store', async (t) => {
  const { world } = await worldWith(t, { store: 'redis' })
  const jane = await signedIn(world, 'jane')
  const writes = async () => (await commandsSinceStart(world.redis as RedisServer)).get('hset') ?? 0
  const before = await writes()

  for (let times = 0; times < 5; times += 1) {
    const { cookie } = shown(await jane.fetch(`${world.url}/quiet/${set(`app_a=${times}; Path=/`, `free=${times}`)}`))
    assert.match(cookie, times === 0 ? /JSESSIONID/ : new RegExp(`app_a=${times - 1}`))
    await jane.fetch(`${world.url}/public/`)
  }

  assert.equal((await writes()) - before, 1)
})

test('Concurrent responses at two replicas lose no cookie of the browser', async (t) => {
  const { world } = await worldWith(t, { store: 'redis', replicas: 2 })
  const jane = await signedIn(world, 'jane')
  const names = Array.from({ length: 10 }, (_, index) => `app_${index}`)
  await Promise.all(
    names.map((name, index) => jane.fetch(`${world.replicas[index % 2]?.url}/quiet/${set(`${name}=1; Path=/`)}`)),
  )

  for (const { url } of world.replicas) {
    const { cookie } = shown(await jane.fetch(`${url}/quiet/`))
    for (const name of names) assert.match(cookie, new RegExp(`\\b${name}=1\\b`))
  }
})

test('An application whose cookies are listed by another upstream of the host keeps them', async (t) => {
  const application = await startSessionApplication(t)
  const world = await startWorld(t, {
    upstream: application.url,
    upstreamSettings: `logout: { cookies: [] }
  other:
    url: ${application.url.origin}
    path: /other
    logout: { cookies: [JSESSIONID] }`,
  })
  const jane = await signedIn(world, 'jane')

  assert.equal(shown(await jane.fetch(`${world.url}/other/`)).visits, 2)
})
