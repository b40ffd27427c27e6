import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Browser } from '../support/browser.ts'
import { processorTime } from '../support/processor-time.ts'
import { startWorld, type World } from '../support/world.ts'

async function signedIn(world: World, person = 'jane'): Promise<Browser> {
  const browser = world.browser(person)
  await browser.get(`${world.url}/echo`)
  return browser
}

function ask(world: World, cookie: string): Promise<{ readonly status: number; readonly body: string }> {
  return world.browser().fetch(`${world.url}/echo`, { headers: { cookie } })
}

for (const order of ['before', 'after'] as const) {
  test(`A foreign session cookie that a neighbor site sets ${order} the right one changes nobody's identity`, async (t) => {
    const world = await startWorld(t)
    const [jane, mallory] = [await signedIn(world), await signedIn(world, 'samir')]
    const both = [jane.cookieHeader, mallory.cookieHeader]

    const { status, body } = await ask(world, (order === 'after' ? both : both.reverse()).join('; '))

    assert.equal(status, 400)
    assert.match(body, /cookies of two sessions/)
    assert.equal((await ask(world, jane.cookieHeader)).status, 200)
  })
}

test('A cookie that a neighbor site sets does not cause a loop of sign-ins', async (t) => {
  const world = await startWorld(t)
  const mallory = await signedIn(world, 'samir')
  const tossed = mallory.cookies.get('gatehouse')?.value ?? ''
  const jane = world.browser()
  jane.cookies.set('gatehouse', { value: tossed, path: '/' })

  // With only the foreign cookie, the browser is signed in as Mallory. After the sign-in it is
  // signed in as Jane, and Mallory's session has ended.
  await jane.get(`${world.url}/.gatehouse/sign-out`, { headers: { 'sec-fetch-site': 'same-origin' } })
  const page = await jane.get(`${world.url}/echo`)

  assert.match(page.body, /"X-Remote-User",\s*"jane"/)
  assert.equal((await ask(world, `gatehouse=${tossed}`)).status, 401)
})

test('A session that is encrypted with one key is invalid under another key, in the same Redis', async (t) => {
  const world = await startWorld(t, { store: 'redis' })
  const other = await startWorld(t, {
    store: 'redis',
    redis: world.redis,
    sessionKey: Buffer.alloc(32, 8).toString('base64'),
  })
  const jane = await signedIn(world)

  assert.equal((await ask(other, jane.cookieHeader)).status, 401)
  assert.equal((await ask(world, jane.cookieHeader)).status, 200)
})

test('A request with 8 KiB of cookies is served, and all cookies but those of the gateway reach the application', async (t) => {
  const world = await startWorld(t)
  const jane = await signedIn(world)
  const large = `theirs=${'x'.repeat(8 * 1024)}`

  const { status, body } = await ask(world, `${large}; ${jane.cookieHeader}; last=1`)

  assert.equal(status, 200)
  assert.match(body, new RegExp(`"${large}; last=1"`))
})

test('80 KiB of cookies get 431, and the gateway continues', async (t) => {
  const world = await startWorld(t)
  const jane = await signedIn(world)

  const { status, body } = await ask(world, `theirs=${'x'.repeat(80 * 1024)}; ${jane.cookieHeader}`)

  assert.equal(status, 431)
  assert.ok(!body.includes('xxx'))
  assert.equal((await ask(world, jane.cookieHeader)).status, 200)
})

for (const [what, pair] of [
  ['of the application', 'c1=1'],
  ['that look like sign-ins', 'gatehouse-signin-AAAAAAAA=1'],
] as const) {
  test(`Thousands of cookies ${what} do no harm`, async (t) => {
    const world = await startWorld(t)
    const jane = await signedIn(world)
    const many = `${pair}; `.repeat(Math.floor((15 * 1024) / (pair.length + 2)))

    const busy = processorTime()
    const admitted = await ask(world, many + jane.cookieHeader)
    const signingIn = await world.browser().send(`${world.url}/.gatehouse/sign-in`, { headers: { cookie: many } })

    assert.equal(admitted.status, 200)
    assert.equal(signingIn.status, 303)
    assert.ok(
      [signingIn.headers['set-cookie'] ?? []].flat().length < 80,
      'names of strangers are without a response one by one',
    )
    assert.ok(busy() < 1000, `${busy()} ms`)
  })
}

test('A callback with the code of another sign-in transaction of the same browser signs nobody in', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  const one = new URL(await jane.until(`${world.url}/echo?tab=1`, '/.gatehouse/callback'))
  const other = new URL(await jane.until(`${world.url}/echo?tab=2`, '/.gatehouse/callback'))
  one.searchParams.set('code', other.searchParams.get('code') ?? '')

  const page = await jane.send(one.href)

  assert.equal(page.status, 400, 'the code belongs to another code_challenge')
  assert.ok(!jane.cookies.has('gatehouse'))
  await jane.get(other.href)
  assert.ok(jane.cookies.has('gatehouse'), 'its own callback is as good as before')
})

test('The code of another person completes no sign-in transaction', async (t) => {
  const world = await startWorld(t)
  const [jane, mallory] = [world.browser(), world.browser('samir')]
  const ofJane = new URL(await jane.until(`${world.url}/echo`, '/.gatehouse/callback'))
  const ofMallory = new URL(await mallory.until(`${world.url}/echo`, '/.gatehouse/callback'))
  ofMallory.searchParams.set('code', ofJane.searchParams.get('code') ?? '')

  const page = await mallory.send(ofMallory.href)

  assert.equal(page.status, 400)
  assert.ok(!mallory.cookies.has('gatehouse'))
})

test('A stolen transaction cookie is useless with another sign-in and after its own sign-in', async (t) => {
  const world = await startWorld(t)
  const [jane, mallory] = [world.browser(), world.browser('samir')]
  const callback = await jane.until(`${world.url}/echo`, '/.gatehouse/callback')
  const stolen = jane.cookieHeader
  const ofMallory = await mallory.until(`${world.url}/echo`, '/.gatehouse/callback')
  const send = (url: string) => world.browser().send(url, { headers: { cookie: stolen } })

  assert.equal((await send(ofMallory)).status, 400)
  assert.equal((await jane.send(callback)).status, 303)
  const late = await send(callback)

  assert.equal(late.status, 400)
  assert.equal(late.headers['set-cookie'], undefined)
})
