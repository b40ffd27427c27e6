import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { startHostileWorld } from '../corpus/hostile-world.ts'
import { startWorld, type World } from '../support/world.ts'

const form = { 'content-type': 'application/x-www-form-urlencoded' }

/**
 * Jane is signed in, and the provider has signed an unused Logout Token for her session.
 */
async function startWithToken(t: TestContext) {
  const world = await startWorld(t)
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  const [session] = world.provider.sessions()
  const logout_token = await world.provider.logoutToken({ sid: session?.sid ?? '', sub: 'jane' })
  const isSignedIn = async () => (await jane.fetch(`${world.url}/echo`)).status === 200
  return { world, jane, logout_token, isSignedIn }
}

function send(world: World, init: RequestInit, query = ''): Promise<Response> {
  return fetch(`${world.url}/.gatehouse/backchannel-logout${query}`, { method: 'POST', ...init })
}

for (const [what, headers, bodyOf] of [
  ['a form', form, (token) => `logout_token=${token}`],
  [
    'a form that says how it is encoded',
    { 'content-type': 'Application/X-WWW-Form-Urlencoded; charset=UTF-8' },
    (token) => `logout_token=${token}`,
  ],
  ['a form with more in it', form, (token) => `a=b&logout_token=${token}&c=d`],
] satisfies readonly (readonly [string, Record<string, string>, (token: string) => string])[])
  test(`a Logout Token in ${what} is accepted with 200 and no content`, async (t) => {
    const { world, logout_token, isSignedIn } = await startWithToken(t)

    const response = await send(world, { headers, body: bodyOf(logout_token) })

    assert.equal(response.status, 200)
    assert.equal(await response.text(), '')
    assert.equal(response.headers.get('cache-control'), 'no-store')
    assert.equal(response.headers.get('set-cookie'), null)
    assert.equal(await isSignedIn(), false)
  })

for (const [what, headers, bodyOf, query] of [
  ['twice', form, (token) => `logout_token=${token}&logout_token=${token}`],
  ['behind an empty one', form, (token) => `logout_token=&logout_token=${token}`],
  ['under another name', form, (token) => `Logout_Token=${token}`],
  ['in JSON', { 'content-type': 'application/json' }, (token) => JSON.stringify({ logout_token: token })],
  ['in plain text', { 'content-type': 'text/plain' }, (token) => `logout_token=${token}`],
  [
    'in a form of another kind',
    { 'content-type': 'multipart/form-data; boundary=x' },
    (token) => `--x\r\nContent-Disposition: form-data; name="logout_token"\r\n\r\n${token}\r\n--x--\r\n`,
  ],
  [
    'in something that begins like a form',
    { 'content-type': 'application/x-www-form-urlencodedx' },
    (token) => `logout_token=${token}`,
  ],
  ['in the query', form, () => '', (token) => `?logout_token=${token}`],
  ['in half', form, (token) => `logout_token=${token.slice(0, -20)}`],
] satisfies readonly (readonly [
  string,
  Record<string, string>,
  (token: string) => string,
  ((token: string) => string)?,
])[])
  test(`a Logout Token that arrives ${what} gets 400, and no session ends`, async (t) => {
    const { world, logout_token, isSignedIn } = await startWithToken(t)

    const response = await send(world, { headers, body: bodyOf(logout_token) }, query?.(logout_token))

    assert.equal(response.status, 400)
    assert.equal(response.headers.get('cache-control'), 'no-store')
    assert.deepEqual(Object.keys((await response.json()) as object), ['error', 'error_description'])
    assert.equal(await isSignedIn(), true)
  })

test('content without a type is no form', async (t) => {
  const { world, logout_token, isSignedIn } = await startWithToken(t)

  const response = await send(world, { body: Buffer.from(`logout_token=${logout_token}`) })

  assert.equal(response.status, 400)
  assert.equal(await isSignedIn(), true)
})

test('the back-channel logout endpoint accepts POST only', async (t) => {
  const { world, logout_token, isSignedIn } = await startWithToken(t)

  for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS']) {
    const response = await send(world, { method }, `?logout_token=${logout_token}`)
    assert.equal(response.status, 405, method)
    assert.equal(response.headers.get('allow'), 'POST')
    assert.equal(response.headers.get('access-control-allow-origin'), null)
  }

  assert.equal(await isSignedIn(), true)
})

test('a form that is too large is not read to its end', async (t) => {
  const { world, logout_token, isSignedIn } = await startWithToken(t)

  const response = await send(world, {
    headers: form,
    body: `logout_token=${logout_token}&pad=${'x'.repeat(17 * 1024)}`,
  })

  assert.equal(response.status, 413)
  assert.equal(await isSignedIn(), true)
})

test('a back-channel logout ignores cookies', async (t) => {
  const { world, logout_token, isSignedIn } = await startWithToken(t)
  const samir = world.browser('samir')
  await samir.get(`${world.url}/echo`)

  await send(world, { headers: { ...form, cookie: samir.cookieHeader }, body: `logout_token=${logout_token}` })

  assert.equal(await isSignedIn(), false)
  assert.equal((await samir.fetch(`${world.url}/echo`)).status, 200)
})

test('the same Logout Token many times at once gets 200 each time, and is carried out once', async (t) => {
  const { world, logout_token, isSignedIn } = await startWithToken(t)

  const responses = await Promise.all(Array.from({ length: 20 }, () => world.postLogoutToken({ logout_token })))

  assert.deepEqual(new Set(responses.map(({ status }) => status)), new Set([200]))
  assert.equal(await isSignedIn(), false)
  const obeyed = world.replicas[0]?.log.filter(({ message }) => message === 'logout_token.obeyed')
  assert.equal(obeyed?.length, 1)
})

test('a Logout Token that is valid for an hour is carried out once, so a later sign-in stays', async (t) => {
  const world = await startHostileWorld(t)
  const alice = world.browser()
  await world.signIn(alice)
  const logout_token = world.provider.logoutToken({ set: { exp: '$now+3600' } })
  assert.equal((await world.postLogoutToken(`logout_token=${logout_token}`)).status, 200)
  assert.equal(await world.isSignedIn(alice), false)
  await world.signIn(alice)

  world.moveClock(20 * 60_000)

  assert.equal((await world.postLogoutToken(`logout_token=${logout_token}`)).status, 200)
  assert.equal(await world.isSignedIn(alice), true)
})

test('an ID Token is not accepted as a Logout Token', async (t) => {
  const { world, jane, isSignedIn } = await startWithToken(t)
  let id_token = ''
  world.provider.bend('/oauth/token', (body) => void (id_token = String(body['id_token'])))
  const other = world.browser()
  await other.get(`${world.url}/echo`)
  assert.ok(id_token.length > 0 && jane.cookies.size > 0)

  assert.equal((await world.postLogoutToken({ logout_token: id_token })).status, 400)

  assert.equal(await isSignedIn(), true)
})

test('Logout Tokens are verified with the known keys while the provider is down', async (t) => {
  const { world, logout_token, isSignedIn } = await startWithToken(t)
  await world.provider.down()

  assert.equal((await world.postLogoutToken({ logout_token })).status, 200)

  assert.equal(await isSignedIn(), false)
})

test('a gateway that has no keys yet asks the provider to try again', async (t) => {
  const world = await startWorld(t, { providerStartsDown: true })
  const logout_token = await world.provider.logoutToken({ sid: 's', sub: 'jane' })

  const response = await world.postLogoutToken({ logout_token })

  assert.equal(response.status, 503)
  assert.ok(response.headers.get('retry-after'))
})

test('the reason for rejecting a Logout Token is in the log, but not in the response', async (t) => {
  const { world } = await startWithToken(t)

  const response = await world.postLogoutToken({ logout_token: 'e30.e30.AAAA' })

  assert.deepEqual(await response.json(), { error: 'invalid_request', error_description: 'logout_token is invalid.' })
  const refused = world.replicas[0]?.log.find(({ message }) => message === 'logout_token.refused')
  assert.match(String(refused?.fields['reason']), /signature or registered claims/)
})
