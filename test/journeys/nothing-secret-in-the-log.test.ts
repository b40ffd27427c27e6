import assert from 'node:assert/strict'
import { test } from 'node:test'
import { demoPeople } from '../../examples/demo/people.ts'
import type { Browser } from '../support/browser.ts'
import { until } from '../support/until.ts'
import { startWorld, type World } from '../support/world.ts'

/** Records all tokens that the provider issues, by name. */
function remember(world: World, secrets: Map<string, string>): void {
  let responses = 0
  world.provider.bend('/oauth/token', (body) => {
    responses += 1
    for (const name of ['access_token', 'refresh_token', 'id_token'])
      secrets.set(`${name} ${responses}`, String(body[name]))
    body['expires_in'] = 10
  })
}

/** The part before it groups the sessions of one sid, and is not secret. */
function secretPart(browser: Browser): string {
  return browser.cookies.get('gatehouse')?.value.slice(24) ?? 'none'
}

/** Finds secrets in the log, whole or as a part that is long enough to identify them. */
function spilt(world: World, secrets: ReadonlyMap<string, string>): string[] {
  const lines = world.replicas.flatMap(({ log, access }) => [...log, ...access]).map((line) => JSON.stringify(line))
  return [...secrets].flatMap(([name, secret]) =>
    lines
      .filter((line) => line.includes(secret) || line.includes(secret.slice(0, 20)) || line.includes(secret.slice(-20)))
      .map((line) => `${name}: ${line}`),
  )
}

test('Sign-in, refresh, errors and sign-out leave no token, cookie, secret or e-mail address in the log', async (t) => {
  const world = await startWorld(t, { store: 'redis', session: 'poll_userinfo: 30s' })
  const secrets = new Map([
    ['client secret', 'correct horse battery staple'],
    ['client secret, encoded', 'correct+horse+battery+staple'],
    ['client credentials', Buffer.from('orders:correct+horse+battery+staple').toString('base64')],
    ['session key', Buffer.alloc(32, 7).toString('base64')],
    ...demoPeople.map(({ sub, email }) => [`e-mail address of ${sub}`, email] as const),
  ])
  remember(world, secrets)
  const jane = world.browser()

  // A sign-in that is rejected in every way before it succeeds.
  const callback = new URL(await jane.until(`${world.url}/echo`, '/.gatehouse/callback'))
  const { code = '', state = '' } = Object.fromEntries(callback.searchParams)
  secrets.set('code', code).set('state', state)
  for (const [name, { value }] of jane.cookies) secrets.set(`cookie ${name}`, value)
  await jane.send(callback.href.replace('iss=', 'iss=x'))
  await jane.send(callback.href)
  await jane.send(`${callback.origin}${callback.pathname}?error=${code}&state=${state}`)
  await world.browser().send(callback.href)

  await jane.get(`${world.url}/echo`)
  secrets.set('session cookie', secretPart(jane))
  await jane.send(`${world.url}/.gatehouse/session`)

  // A refresh that succeeds, one that is rejected, and one with an invalid response.
  world.moveClock(11_000)
  await jane.fetch(`${world.url}/echo`)
  for (const response of [
    '{"access_token":',
    '<html>',
    '{"error":"invalid_request","error_description":"for jane.doe@example.com"}',
  ]) {
    world.provider.fault('/oauth/token', (_req, res) =>
      res.writeHead(400, { 'content-type': 'application/json' }).end(response),
    )
    world.moveClock(11_000)
    assert.equal((await jane.fetch(`${world.url}/echo`)).status, 503)
  }
  remember(world, secrets)
  world.moveClock(11_000)
  await jane.fetch(`${world.url}/echo`)
  world.provider.fault('/oauth/userinfo', (_req, res) => res.writeHead(500).end('jane.doe@example.com'))
  world.moveClock(11_000)
  await jane.fetch(`${world.url}/echo`)

  // A logout at the provider, a sign-out by the person, and invalid Logout Tokens.
  const id_token = [...secrets].findLast(([name]) => name.startsWith('id_token'))?.[1] ?? ''
  await world.postLogoutToken({ logout_token: id_token })
  const [session] = world.provider.sessions()
  const logout_token = await world.provider.logoutToken({ sid: session?.sid ?? '', sub: 'jane' })
  secrets.set('logout token', logout_token)
  await world.postLogoutToken(`logout_token=${logout_token}&logout_token=${logout_token}`)
  await world.postLogoutToken({ logout_token })
  await world.postLogoutToken({ logout_token })
  world.provider.bend('/oauth/userinfo', () => {})
  const samir = world.browser('samir')
  await samir.get(`${world.url}/echo`)
  secrets.set('other session cookie', secretPart(samir))
  await world.provider.down()
  await samir.get(`${world.url}/.gatehouse/sign-out`).catch(() => {})
  await until('signing out is in the log', () =>
    world.replicas.some(({ log }) => log.some(({ fields }) => fields['by'] === 'person')),
  )

  assert.ok(secrets.size >= 20, `${secrets.size} secrets`)
  assert.ok([...secrets.values()].every((secret) => secret.length >= 10 && secret !== 'undefined'))
  assert.deepEqual(spilt(world, secrets), [])
})
