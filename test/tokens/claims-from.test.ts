import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { changed } from '../support/changed-file.ts'
import { graph, startApi } from '../support/claims-apis.ts'
import { sendJson } from '../support/signing-provider.ts'
import { until } from '../support/until.ts'
import type { Replica, World } from '../support/world.ts'
import { startSignedIn } from './signed-in.ts'

/** Who is not in the group may open `/guests/`: what must not follow from a missing response. */
const upstreamSettings = `rules:
      - { path: /admin/*, require: { claim: groups, any_of: [admins] } }
      - { path: /guests/*, require: { claim: groups, none_of: [admins] } }
      - { path: /* }`

/** Jane is signed in, with groups from an API. */
async function startWithApi(
  t: TestContext,
  {
    source = '',
    respond = graph(['staff', 'admins']),
  }: { source?: string; respond?: Parameters<typeof startApi>[1] } = {},
) {
  const api = await startApi(t, respond)
  const entry = `{ url: "${api.origin}/v1.0/me/memberOf", select: "value[].id", as: groups, pages: '"@odata.nextLink"' ${source} }`
  const signedIn = await startSignedIn(t, {
    session: 'poll_userinfo: 60s',
    headers: 'X-Remote-User: sub\n      X-Groups: { claim: groups, join: "," }',
    upstreamSettings,
    providerSettings: `claims_from: [${entry}]`,
  })
  signedIn.world.provider.bend('/oauth/token', (body) => void (body['expires_in'] = 3 * 3600))
  signedIn.world.moveClock(11_000)
  await signedIn.ask()
  const isDenied = async (path: string) => (await signedIn.jane.fetch(`${signedIn.world.url}${path}`)).status === 403
  return { ...signedIn, api, isDenied }
}

const down: Parameters<typeof startApi>[1] = (_req, res) => res.writeHead(503, { 'retry-after': '120' }).end()
const broken: Parameters<typeof startApi>[1] = (_req, res) => sendJson(res, { error: {} }, 403)

interface Passing {
  readonly world: World
  readonly ask: () => Promise<unknown>
}

/**
 * Lets minutes pass, with a request in each, until something is so. A reading that is under way
 * stores the time of its end, so a clock that is moved once could skip the time of the next one.
 * @returns how many minutes have passed
 */
async function untilLater(
  what: string,
  { world, ask }: Passing,
  isSo: () => boolean | Promise<boolean>,
): Promise<number> {
  let minutes = 0
  await until(what, async () => {
    world.moveClock(60_000)
    minutes += 1
    await ask()
    return isSo()
  })
  return minutes
}

test('the groups of an API decide about rules, and are in headers', async (t) => {
  const { told, isDenied } = await startWithApi(t)

  assert.equal((await told()).get('x-groups'), 'staff,admins')
  assert.equal(await isDenied('/admin/'), false)
  assert.equal(await isDenied('/guests/'), true)
})

test('a person who leaves a group loses its rights at the next reading', async (t) => {
  const { world, api, ask, isDenied } = await startWithApi(t)
  api.respond(graph(['staff']))

  world.moveClock(60_000)
  await ask()

  await until('the rule denies', () => isDenied('/admin/'))
  assert.equal(await isDenied('/guests/'), false)
})

for (const [what, respond] of [
  ['is down', down],
  ['refuses the token', broken],
] as const)
  test(`a sign-in while the API ${what} has no group, and also none of "none_of"`, async (t) => {
    const { told, isDenied } = await startWithApi(t, { respond })

    assert.equal((await told()).get('x-remote-user'), 'jane')
    assert.equal((await told()).has('x-groups'), false)
    assert.equal(await isDenied('/admin/'), true)
    assert.equal(await isDenied('/guests/'), true)
  })

test('after a failed reading, the next one waits as long as the API asks, and no longer', async (t) => {
  const { world, api, ask, isDenied } = await startWithApi(t, { respond: down })
  api.respond(graph(['admins']))

  const minutes = await untilLater('the claim is there', { world, ask }, async () => !(await isDenied('/admin/')))

  assert.ok(minutes >= 2 && minutes < 10, `after ${minutes} minutes`)
})

test('groups count for an hour while their API is away, and are withheld then', async (t) => {
  const { world, api, ask, isDenied } = await startWithApi(t)
  api.respond(down)

  const minutes = await untilLater('the claim is withheld', { world, ask }, () => isDenied('/admin/'))

  assert.ok(minutes >= 60, `after ${minutes} minutes`)
  assert.equal(await isDenied('/guests/'), true)
})

test('groups are withheld at once when the API refuses the token', async (t) => {
  const { world, api, ask, isDenied } = await startWithApi(t)
  api.respond(broken)
  world.moveClock(60_000)
  await ask()

  await until('the claim is withheld', () => isDenied('/admin/'))
  assert.equal(await isDenied('/guests/'), true)
})

test('an access token that has expired for the API is refreshed once', async (t) => {
  const { world, api, ask, isDenied, refreshes } = await startWithApi(t)
  const stale = api.requests.at(-1)?.headers.authorization
  const before = refreshes()
  api.respond((req, res, url) =>
    req.headers.authorization === stale ? res.writeHead(401).end() : graph(['admins', 'new'])(req, res, url),
  )
  world.moveClock(60_000)
  await ask()

  await until('the tokens were refreshed', () => refreshes() === before + 1)
  await until('the API is read with them', () => api.requests.at(-1)?.headers.authorization !== stale)
  assert.equal(await isDenied('/admin/'), false)
})

test('an API that rejects each token does not cause more refreshes, and ends no session', async (t) => {
  const { world, api, ask, isDenied, refreshes } = await startWithApi(t)
  const before = [refreshes(), api.requests.length] as const
  api.respond((_req, res) => res.writeHead(401).end())

  await untilLater('the API is read several times', { world, ask }, () => api.requests.length > before[1] + 3)

  assert.equal(await isDenied('/admin/'), true)
  assert.equal((await ask()).status, 200)
  assert.equal(refreshes(), before[0] + 1)
})

test('with every, the API is read less often than UserInfo, and its claim stays', async (t) => {
  const { world, api, ask, isDenied } = await startWithApi(t, { source: ', every: 10m' })
  const [before, polls] = [api.requests.length, world.provider.hits('/oauth/userinfo')]

  const minutes = await untilLater('the API is read', { world, ask }, () => api.requests.length > before)

  assert.ok(minutes >= 10, `after ${minutes} minutes`)
  assert.ok(world.provider.hits('/oauth/userinfo') > polls + 3)
  assert.equal(await isDenied('/admin/'), false)
})

test('groups of an API are added to those of UserInfo with merge', async (t) => {
  const api = await startApi(t, graph(['admins']))
  const { world, told } = await startSignedIn(t, {
    headers: 'X-Groups: { claim: groups, join: "," }',
    providerSettings: `claims_from: [{ url: "${api.origin}/me", select: "value[].id", as: groups, merge: true }]`,
  })
  world.provider.bend('/oauth/userinfo', (body) => void (body['groups'] = ['staff', 'admins']))
  world.provider.bend('/oauth/token', (body) => void (body['expires_in'] = 3 * 3600))
  world.moveClock(11_000)

  await until('both are sent', async () => (await told()).get('x-groups') === 'staff,admins')
})

test('a session from before claims_from has the claim withheld until the API is read', async (t) => {
  let release = () => {}
  const api = await startApi(t, (req, res, url) => void (release = () => graph(['admins'])(req, res, url)))
  const { world, ask, jane } = await startSignedIn(t, {
    headers: 'X-Remote-User: sub',
    upstreamSettings,
    providerSettings: 'timeout: 60s',
  })
  world.provider.bend('/oauth/token', (body) => void (body['expires_in'] = 3 * 3600))
  world.moveClock(11_000)
  await ask()
  const mayOpen = async (path: string) => (await jane.fetch(`${world.url}${path}`)).status !== 403
  assert.equal(await mayOpen('/guests/'), true)

  const [replica] = world.replicas as [Replica]
  const entry = `{ url: "${api.origin}/me", select: "value[].id", as: groups, pages: '"@odata.nextLink"' }`
  await replica.gateway.reload(changed(replica, 'timeout: 60s', `claims_from: [${entry}]`))

  assert.equal(await mayOpen('/guests/'), false)
  assert.equal(await mayOpen('/admin/'), false)
  await until('the API is asked', () => api.requests.length === 1)
  release()
  await until('the claim is there', () => mayOpen('/admin/'))
  assert.equal(await mayOpen('/guests/'), false)
})
