import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Browser, Visit, VisitOptions } from '../support/browser.ts'
import { openEventStream } from '../support/streams.ts'
import { until } from '../support/until.ts'
import { startWorld, type World } from '../support/world.ts'

const fromThisSite = { headers: { 'sec-fetch-site': 'same-origin' } }

/** The result of the logout at the provider, as the audit event has it. */
function outcomeOf({ replicas }: World, event: 'provider.end_session' | 'provider.revocation'): unknown {
  return replicas[0]?.log.find(({ message }) => message === event)?.fields['outcome']
}

test('A person signs out through the provider and comes back to a page that does not sign in again', async (t) => {
  const world = await startWorld(t, { store: 'redis' })
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)

  const page = await jane.get(`${world.url}/.gatehouse/sign-out`, fromThisSite)

  assert.equal(page.status, 200)
  assert.equal(new URL(page.url).pathname, '/.gatehouse/signed-out')
  assert.ok(new URL(page.url).searchParams.get('state'))
  assert.match(page.body, /You are signed out/)
  assert.deepEqual(world.provider.sessions(), [])
  assert.deepEqual(
    [...jane.cookies.keys()].filter((name) => name.startsWith('gatehouse')),
    [],
  )
  assert.equal((await jane.fetch(`${world.url}/echo`)).status, 401)
})

test('The session ends before the browser reaches the provider, and a copy of the cookie is useless', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  const kept = jane.cookieHeader

  const first = await jane.send(`${world.url}/.gatehouse/sign-out`, fromThisSite)

  assert.equal(first.status, 303)
  const target = new URL(String(first.headers['location']))
  assert.equal(target.origin + target.pathname, `${world.provider.issuer}/oauth/logout`)
  assert.deepEqual([...target.searchParams.keys()].sort(), ['id_token_hint', 'post_logout_redirect_uri', 'state'])
  assert.equal((await world.browser().fetch(`${world.url}/echo`, { headers: { cookie: kept } })).status, 401)
})

test('The logout link of the application signs out everywhere and removes the cookie of the application', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  assert.ok(jane.cookies.has('JSESSIONID'))

  const page = await jane.get(`${world.url}/logout`, fromThisSite)

  assert.match(page.body, /You are signed out/)
  assert.ok(!jane.cookies.has('JSESSIONID'))
})

test('A sign-out closes the open streams of the session', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  const stream = await openEventStream(t, `${world.url}/events`, jane.cookieHeader)

  await jane.send(`${world.url}/.gatehouse/sign-out`, fromThisSite)

  await stream.ended
})

for (const [who, signOut] of [
  ['a person', (jane, url) => jane.send(url, fromThisSite)],
  ['a script', (jane, url) => jane.fetch(url, { method: 'POST' })],
] satisfies readonly (readonly [string, (jane: Browser, url: string) => Promise<Visit>])[])
  test(`When ${who} signs out, the gateway revokes the refresh token at the provider`, async (t) => {
    const world = await startWorld(t)
    let refresh_token: unknown
    world.provider.bend('/oauth/token', (body) => void (refresh_token = body['refresh_token']))
    let form = ''
    world.provider.fault('/oauth/revoke', (req, _res, pass) => {
      req.on('data', (chunk: Buffer) => (form += chunk.toString()))
      pass()
    })
    const jane = world.browser()
    await jane.get(`${world.url}/echo`)

    await signOut(jane, `${world.url}/.gatehouse/sign-out`)

    await until('the revocation is recorded', () => outcomeOf(world, 'provider.revocation') !== undefined)
    assert.equal(outcomeOf(world, 'provider.revocation'), 'revoked')
    assert.equal(typeof refresh_token, 'string')
    assert.equal(new URLSearchParams(form).get('token'), refresh_token)
  })

test('When a script signs out, the gateway ends the provider session from server to server', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)

  const response = await jane.fetch(`${world.url}/.gatehouse/sign-out`, { method: 'POST' })

  assert.deepEqual(JSON.parse(response.body), { signed_out: true, provider: 'ended' })
  assert.deepEqual(world.provider.sessions(), [])
})

test('When a script signs out and the provider is unreachable, the local session ends', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  await world.provider.down()

  const response = await jane.fetch(`${world.url}/.gatehouse/sign-out`, { method: 'POST' })

  assert.deepEqual(JSON.parse(response.body), { signed_out: true, provider: 'unreachable' })
  assert.equal((await jane.fetch(`${world.url}/echo`)).status, 401)
  assert.ok(
    world.replicas[0]?.log.some(
      ({ message, fields }) => message === 'provider.end_session' && fields['outcome'] === 'unreachable',
    ),
  )
})

test('When a browser signs out and the provider is unreachable, the local session ends', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  await world.provider.down()

  assert.equal((await jane.send(`${world.url}/.gatehouse/sign-out`, fromThisSite)).status, 303)

  assert.equal((await jane.fetch(`${world.url}/echo`)).status, 401)
})

const question = '<!doctype html><title>Log out</title><form method="post"><button>Yes</button></form>'

for (const [what, provider, status, type, body] of [
  ['refuses', 'unknown', 400, 'application/json', '{"error":"invalid_request"}'],
  ['wants to ask the person about it elsewhere', 'unknown', 302, 'text/html', ''],
  ['asks the person with a form', 'unknown', 200, 'text/html; charset=utf-8', question],
  ['asks the person with a page that is not called one', 'unknown', 200, 'application/octet-stream', question],
  ['answers with an error and status 200', 'unknown', 200, 'application/json', '{"error":"server_error"}'],
  ['fails', 'unreachable', 500, 'text/html', question],
  ['is overloaded', 'unreachable', 429, 'text/plain', ''],
  ['answers with nothing', 'ended', 204, 'text/plain', ''],
  ['answers with JSON', 'ended', 200, 'application/json', '{}'],
  ['answers with a word', 'ended', 200, 'text/html; charset=utf-8', 'OK'],
] as const)
  test(`The response to a script says "${provider}" for the provider session when the provider ${what}`, async (t) => {
    const world = await startWorld(t)
    const jane = world.browser()
    await jane.get(`${world.url}/echo`)
    const headers = { 'content-type': type, location: `${world.provider.issuer}/ask` }
    world.provider.fault('/oauth/logout', (_req, res) => void res.writeHead(status, headers).end(body))

    const response = await jane.fetch(`${world.url}/.gatehouse/sign-out`, { method: 'POST' })

    assert.deepEqual(JSON.parse(response.body), { signed_out: true, provider })
    assert.equal(outcomeOf(world, 'provider.end_session'), provider)
    assert.equal((await jane.fetch(`${world.url}/echo`)).status, 401)
  })

for (const [what, options] of [
  ['a link on another site', { headers: { 'sec-fetch-site': 'cross-site' } }],
  [
    'an image on another site',
    {
      headers: {
        'sec-fetch-site': 'cross-site',
        'sec-fetch-mode': 'no-cors',
        'sec-fetch-dest': 'image',
        accept: 'image/*',
      },
    },
  ],
  [
    'a form of another site',
    { method: 'POST', headers: { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }, body: '' },
  ],
  [
    'a script of another site',
    {
      method: 'POST',
      headers: { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty', accept: '*/*' },
      body: '',
    },
  ],
] as const) {
  test(`A sign-out by ${what} signs nobody out`, async (t) => {
    const world = await startWorld(t)
    const jane = world.browser()
    await jane.get(`${world.url}/echo`)

    await jane.send(`${world.url}/.gatehouse/sign-out`, options)

    assert.equal((await jane.fetch(`${world.url}/echo`)).status, 200)
  })
}

test('A return from the provider that belongs to no sign-out of this browser signs nobody out, and does not claim to', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)

  for (const query of ['?state=made-up', '']) {
    const { body, headers } = await jane.get(`${world.url}/.gatehouse/signed-out${query}`)
    assert.match(body, /You are still signed in/)
    // Any page can link here.
    assert.deepEqual([headers['refresh'], headers['clear-site-data']], [undefined, undefined])
  }

  assert.equal((await jane.fetch(`${world.url}/echo`)).status, 200)
})

for (const announced of [{ 'sec-purpose': 'prefetch;prerender' }, { purpose: 'prefetch' }, { 'x-moz': 'prefetch' }]) {
  test(`A link that the browser prefetches signs nobody out: ${JSON.stringify(announced)}`, async (t) => {
    const world = await startWorld(t)
    const jane = world.browser()
    await jane.get(`${world.url}/echo`)

    const headers = { ...fromThisSite.headers, ...announced }
    const page = await jane.send(`${world.url}/.gatehouse/sign-out`, { headers })

    assert.match(page.body, /Do you want to sign out\?/)
    assert.equal((await jane.fetch(`${world.url}/echo`)).status, 200)
  })
}

test('A sign-out removes the cookies of all applications on the host', async (t) => {
  const world = await startWorld(t, {
    upstreamSettings: `logout: { cookies: [OF_ALL, OF_ORDERS] }
  reports:
    url: http://127.0.0.1:1
    path: /reports/
    logout: { cookies: [OF_ALL, OF_REPORTS] }
  here:
    url: http://127.0.0.1:1
    hosts: [127.0.0.1]
    path: /here/
    logout: { cookies: [OF_HERE] }
  elsewhere:
    url: http://127.0.0.1:1
    hosts: [elsewhere.example.com]
    logout: { cookies: [OF_ELSEWHERE] }`,
  })
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  for (const name of ['OF_ALL', 'OF_ORDERS', 'OF_REPORTS', 'OF_HERE', 'OF_ELSEWHERE'])
    jane.cookies.set(name, { value: '1', path: '/' })

  await jane.get(`${world.url}/.gatehouse/sign-out`, fromThisSite)

  const left = [...jane.cookies.keys()].filter((name) => name.startsWith('OF_'))
  assert.deepEqual(left, ['OF_ELSEWHERE'])
})

/** The redirects of `sign-out?then=sign-in`, up to the question of the provider. */
async function otherAccount(jane: Browser, url: string, options: VisitOptions = fromThisSite): Promise<string[]> {
  const hops = []
  let visit = await jane.send(url, options)
  while (typeof visit.headers['location'] === 'string') {
    const next = new URL(visit.headers['location'], visit.url)
    hops.push(next.href)
    visit = await jane.send(next.href, { headers: { 'sec-fetch-site': 'cross-site' } })
  }
  return hops
}

test('Switching accounts signs the person out everywhere first, and the provider then asks who signs in', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  const kept = jane.cookieHeader

  const hops = await otherAccount(jane, `${world.url}/.gatehouse/sign-out?then=sign-in&return_to=%2Fadmin%2F%3Fa%3Db`)

  assert.equal((await world.browser().fetch(`${world.url}/echo`, { headers: { cookie: kept } })).status, 401)
  assert.deepEqual(world.provider.sessions(), [])
  const back = hops.find((hop) => hop.startsWith(`${world.url}/.gatehouse/sign-in`))
  assert.equal(back, `${world.url}/.gatehouse/sign-in?prompt=login&return_to=%2Fadmin%2F%3Fa%3Db`)
  const asked = hops.map((hop) => new URL(hop)).find(({ searchParams }) => searchParams.has('code_challenge'))
  assert.equal(asked?.searchParams.get('prompt'), 'login')
})

test('Switching accounts leads to the sign-in while the provider is unreachable, and the old session has ended', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  await world.provider.down()

  const page = await jane.send(`${world.url}/.gatehouse/sign-out?then=sign-in&return_to=%2Fadmin%2F`, fromThisSite)

  assert.equal(page.status, 303)
  assert.equal((await jane.fetch(`${world.url}/echo`)).status, 401)
})

test('Switching accounts without a session leads straight to the question of the provider', async (t) => {
  const world = await startWorld(t)

  const page = await world.browser().send(`${world.url}/.gatehouse/sign-out?then=sign-in`, fromThisSite)

  assert.equal(page.headers['location'], '/.gatehouse/sign-in?prompt=login')
})

test('A link on another site that asks to switch accounts signs nobody out, and its target is ignored', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)

  const url = `${world.url}/.gatehouse/sign-out?then=sign-in&return_to=%2Fadmin%2F`
  const page = await jane.send(url, { headers: { 'sec-fetch-site': 'cross-site' } })

  assert.match(page.body, /<form method="post" action="\/\.gatehouse\/sign-out">/)
  assert.doesNotMatch(page.body, /admin/)
  assert.equal((await jane.fetch(`${world.url}/echo`)).status, 200)
})

for (const target of [
  'https://evil.example/',
  '//evil.example/',
  '/\\evil.example/',
  '/.gatehouse/sign-out',
  'javascript:alert(1)',
])
  test(`Switching accounts leads to this site only: ${target}`, async (t) => {
    const world = await startWorld(t)
    const jane = world.browser()
    await jane.get(`${world.url}/echo`)

    const url = `${world.url}/.gatehouse/sign-out?then=sign-in&return_to=${encodeURIComponent(target)}`
    const page = await jane.get(url, fromThisSite)

    assert.equal(page.url, `${world.url}/`)
  })

test('A planted cookie does not redirect a person to another site after sign-out', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  const planted = Buffer.from('https://evil.example/').toString('base64url')
  jane.cookies.set('gatehouse-signout', { value: `made-up.${planted}`, path: '/' })

  const page = await jane.get(`${world.url}/.gatehouse/signed-out?state=made-up`)

  assert.equal(page.url, `${world.url}/`)
})

test('A return from the provider with two values of "state" is invalid and does not lead to the sign-in', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  const back = await jane.until(`${world.url}/.gatehouse/sign-out?then=sign-in`, '/.gatehouse/signed-out')

  const page = await jane.send(`${back}&state=another`)

  assert.equal(page.status, 200)
  assert.match(page.body, /You are signed out/)
})
