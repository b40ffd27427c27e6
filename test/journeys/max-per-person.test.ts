// Slow: 3 s, each situation with each kind of store
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { loadConfig } from '../../src/config/load.ts'
import type { Browser, Visit } from '../support/browser.ts'
import { startFormApplication } from '../support/form-application.ts'
import { goOn, submit } from '../support/form-browser.ts'
import { startSessionApplication } from '../support/session-application.ts'
import { openSessionEvents } from '../support/session-events.ts'
import { press } from '../support/session-page.ts'
import { until } from '../support/until.ts'
import { secrets, startWorld, type World } from '../support/world.ts'

const endOldest = { session: 'max_per_person: 2' }
const refuse = { session: 'max_per_person: { count: 2, when_exceeded: refuse }' }

const events = ({ replicas }: World, message: string) =>
  replicas.flatMap(({ log }) => log.filter((line) => line.message === message))

async function statuses(world: World, browsers: readonly Browser[]): Promise<readonly number[]> {
  return Promise.all(browsers.map(async (browser) => (await browser.fetch(`${world.url}/echo`)).status))
}

/** Browsers of one person that have signed in one after the other. */
async function signedIn(world: World, count: number, person = 'jane'): Promise<Browser[]> {
  const browsers: Browser[] = []
  for (let n = 0; n < count; n += 1) {
    const browser = world.browser(person)
    assert.equal((await browser.get(`${world.url}/echo`)).status, 200)
    browsers.push(browser)
    // The order of sign-ins in the same millisecond is that of their keys.
    world.moveClock(5)
  }
  return browsers
}

for (const store of ['memory', 'redis'] as const) {
  test(`${store}: The oldest session of a person ends when there is one too many`, async (t) => {
    const world = await startWorld(t, { store, ...endOldest })
    const [samir] = await signedIn(world, 1, 'samir')

    const browsers = await signedIn(world, 3)

    assert.deepEqual(await statuses(world, [...browsers, samir as Browser]), [401, 200, 200, 200])
    assert.deepEqual(
      events(world, 'session.ended').map(({ fields }) => [fields['by'], fields['sub']]),
      [['max_per_person', 'jane']],
    )
  })

  test(`${store}: A new sign-in in the same browser replaces its session, and ends no other`, async (t) => {
    const world = await startWorld(t, { store, ...refuse })
    const [one, two] = (await signedIn(world, 2)) as [Browser, Browser]

    const again = await two.get(`${world.url}/.gatehouse/sign-in?return_to=%2F.gatehouse%2Fsigned-in`, {
      headers: { 'sec-fetch-site': 'same-origin' },
    })

    assert.equal(again.status, 200)
    assert.deepEqual(await statuses(world, [one, two]), [200, 200])
    assert.deepEqual(
      events(world, 'session.ended').map(({ fields }) => fields['by']),
      ['new_sign_in'],
    )
  })

  test(`${store}: A session that has expired by the idle timeout does not count`, async (t) => {
    const session = `${refuse.session}\n  idle_timeout: 1s`
    const world = await startWorld(t, { store, session })
    await signedIn(world, 2)
    // The clock of Redis is real.
    world.moveClock(2_000)

    await until(
      'the sessions have expired',
      async () => (await world.browser().get(`${world.url}/echo`)).status === 200,
    )
  })
}

test('A browser whose session was ended says so once, and then signs in when its person wants to', async (t) => {
  const world = await startWorld(t, { session: 'max_per_person: 1' })
  const [one] = (await signedIn(world, 1)) as [Browser]
  const ended = { name: 'ended', data: { reason: 'signed_in_elsewhere' } }
  const stream = await openSessionEvents(t, world.url, one)
  assert.equal((await stream.next())?.name, 'session')
  const [two] = (await signedIn(world, 1)) as [Browser]
  assert.deepEqual(await stream.next(), ended)
  const late = await openSessionEvents(t, world.url, one)
  assert.deepEqual(await late.next(), ended)

  const page = await one.get(`${world.url}/echo?a=1`)

  assert.equal(page.status, 200)
  assert.match(page.body, /<h1>You have signed in elsewhere\.<\/h1>/)
  assert.deepEqual(await statuses(world, [two]), [200])
  const [, link = ''] = /class="first" href="([^"]*)"/.exec(page.body) ?? []
  const again = await one.get(new URL(link.replaceAll('&amp;', '&'), page.url).href)
  assert.deepEqual([again.status, new URL(again.url).search], [200, '?a=1'])
  assert.deepEqual(await statuses(world, [one, two]), [200, 401])
})

test('A refused sign-in lists the other sessions, and goes on when the person has ended one', async (t) => {
  const world = await startWorld(t, { store: 'redis', ...refuse })
  const [one, two] = (await signedIn(world, 2)) as [Browser, Browser]
  const three = world.browser()

  const page = await three.get(`${world.url}/echo?a=1`)

  assert.equal(page.status, 403)
  assert.match(page.body, /You are signed in in too many browsers\./)
  assert.equal(page.body.match(/<h2>/g)?.length, 2)
  assert.doesNotMatch(page.body, /eyJ/, 'no token is in the page')
  assert.equal(three.cookies.has('gatehouse'), false)
  assert.deepEqual(await statuses(world, [one, two]), [200, 200])
  assert.equal(events(world, 'session.created').length, 2, 'the refused sign-in leaves no session')
  const [failed] = events(world, 'sign_in.failed')
  assert.equal(failed?.fields['code'], 'ERR_TOO_MANY_SESSIONS')
  assert.equal(failed?.fields['sub'], 'jane', 'the operator learns whose sign-in it was')

  const next = await press(three, page, /End the session of/)

  assert.deepEqual([next.status, new URL(next.url).search], [200, '?a=1'])
  const [first, second] = await statuses(world, [one, two])
  assert.deepEqual([first, second].sort(), [200, 401])
  assert.equal(events(world, 'session.ended')[0]?.fields['by'], 'person')
})

test('The form of a refused sign-in works once, in its browser, and for its person only', async (t) => {
  const world = await startWorld(t, refuse)
  const [one, two] = (await signedIn(world, 2)) as [Browser, Browser]
  const three = world.browser()
  const page = await three.get(`${world.url}/echo`)
  const proof = new Map(three.cookies)

  // Without its cookie, and from a page of another site.
  await press(world.browser(), page, /End the session of/)
  const forged = await press(three, page, /End the session of/, { 'sec-fetch-site': 'cross-site' })
  assert.equal(forged.status, 403)
  assert.deepEqual(await statuses(world, [one, two]), [200, 200])

  await press(three, page, /End the session of/)
  for (const [name, cookie] of proof) three.cookies.set(name, cookie)
  await press(three, page, /End all other sessions/)

  assert.deepEqual((await statuses(world, [one, two])).toSorted(), [200, 401])
})

test('A kept form survives a sign-in that was refused first', async (t) => {
  const application = await startFormApplication(t)
  const session = 'idle_timeout: 1m\n  max_per_person: { count: 1, when_exceeded: refuse }'
  const world = await startWorld(t, { upstream: application.url, session })
  const jane = world.browser()
  await jane.get(`${world.url}/forms`)
  world.moveClock(61_000)
  assert.equal((await world.browser().get(`${world.url}/forms`)).status, 200)

  const refused = await goOn(jane, await submit(jane, world.url))
  assert.equal(refused.status, 403)
  const kept = await press(jane, refused, /End the session of/)

  assert.match(kept.body, /Do you want to send what you entered\?/)
})

test('After a reload with a smaller number, the next sign-in ends as many sessions as needed', async (t) => {
  const world = await startWorld(t, { store: 'redis', session: 'max_per_person: 4' })
  const browsers = await signedIn(world, 4)
  const { gateway, file } = world.replicas[0] ?? assert.fail()
  writeFileSync(file, readFileSync(file, 'utf8').replace('max_per_person: 4', 'max_per_person: 2'))
  const loaded = loadConfig(file, secrets)
  assert.ok(loaded.ok)
  await gateway.reload(loaded.config)
  assert.deepEqual(await statuses(world, browsers), [200, 200, 200, 200])

  const last = await signedIn(world, 1)

  assert.deepEqual(await statuses(world, [...browsers, ...last]), [401, 401, 401, 200, 200])
})

for (const [mode, options, expected] of [
  ['end_oldest', endOldest, 0],
  ['refuse', refuse, 8],
] as const)
  test(`${mode}: Of ten sign-ins at the same time at two replicas, exactly two sessions remain`, async (t) => {
    const world = await startWorld(t, { store: 'redis', replicas: 2, ...options })
    const browsers = Array.from({ length: 10 }, () => world.browser())
    const callbacks: string[] = []
    for (const browser of browsers) callbacks.push(await browser.until(`${world.url}/echo`, '/.gatehouse/callback'))

    const ends = await Promise.all(
      browsers.map((browser, n) => {
        const { url } = world.replicas[n % 2] ?? assert.fail()
        return browser.send(`${url}${(callbacks[n] ?? '').slice(world.url.length)}`)
      }),
    )

    const counts = (of: readonly number[], status: number) => of.filter((each) => each === status).length
    assert.equal(counts(await statuses(world, browsers), 200), 2)
    if (mode === 'refuse')
      assert.equal(
        counts(
          ends.map(({ status }: Visit) => status),
          403,
        ),
        expected,
      )
  })

test('When the store fails while the sessions are counted, the sign-in fails and leaves no session', async (t) => {
  const world = await startWorld(t, { store: 'redis', ...endOldest })
  const [one] = (await signedIn(world, 1)) as [Browser]
  const two = world.browser()
  const callback = await two.until(`${world.url}/echo`, '/.gatehouse/callback')
  const redis = new Redis(world.redis?.url ?? '')
  t.after(() => redis.disconnect())
  // The session can be stored, but no record can be read.
  await redis.acl('SETUSER', 'default', '-hmget')

  const failed = await two.send(callback)

  assert.equal(failed.status, 503)
  assert.equal(two.cookies.has('gatehouse'), false)
  assert.equal(events(world, 'session.created').length, 2)
  await redis.acl('SETUSER', 'default', '+hmget')
  await until('the ending is repeated', () => events(world, 'session.ended').length > 0)
  assert.equal(events(world, 'session.ended')[0]?.fields['by'], 'max_per_person')
  assert.deepEqual(await statuses(world, [one]), [200])
})

test('The application learns that the session of its oldest browser has ended', async (t) => {
  const application = await startSessionApplication(t)
  const world = await startWorld(t, {
    store: 'redis',
    session: 'max_per_person: 1',
    upstream: application.url,
    upstreamSettings: 'session_cookies: [JSESSIONID]\n    logout: { call: /logout }',
  })
  await signedIn(world, 2)

  await until('it is called', () => application.logouts.length > 0)

  assert.deepEqual(
    application.logouts.map(({ owner }) => owner),
    ['jane'],
  )
  assert.deepEqual(application.owners(), ['jane'])
})

test('A refused sign-in goes on where it began: at a rule with step_up, or at initiate-login', async (t) => {
  const world = await startWorld(t, {
    session: 'max_per_person: { count: 1, when_exceeded: refuse }',
    upstreamSettings: 'rules: [{ path: /echo, step_up: { max_age: 10m } }]',
  })
  const initiate = new URL(`${world.url}/.gatehouse/initiate-login`)
  initiate.searchParams.set('iss', world.provider.issuer)
  initiate.searchParams.set('target_link_uri', `${world.url}/echo?a=2`)
  let previous = world.browser()
  assert.equal((await previous.get(`${world.url}/echo`)).status, 200)
  for (const [start, search] of [
    [`${world.url}/echo?a=1`, '?a=1'],
    [initiate.href, '?a=2'],
  ] as const) {
    const next = world.browser()
    const refused = await next.get(start)
    assert.equal(refused.status, 403)

    const { status, url } = await press(next, refused, /End the session of/)

    assert.deepEqual([status, new URL(url).search], [200, search])
    assert.deepEqual(await statuses(world, [previous, next]), [401, 200])
    previous = next
  }
})
