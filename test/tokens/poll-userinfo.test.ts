import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { Redis } from 'ioredis'
import { until } from '../support/until.ts'
import type { World } from '../support/world.ts'
import { startSignedIn } from './signed-in.ts'

const fields = 'https://id.example.com/claims/fields'
const polled = { session: 'poll_userinfo: 30s' }
const unauthorized = { 'www-authenticate': 'Bearer error="invalid_token"' }

/** Tokens that live for an hour: only userinfo is due. */
async function startPolled(t: TestContext) {
  const signedIn = await startSignedIn(t, polled)
  const { world, ask } = signedIn
  world.provider.bend('/oauth/token', (body) => void (body['expires_in'] = 3600))
  world.moveClock(11_000)
  await ask()
  const [polls, refreshes] = [world.provider.hits('/oauth/userinfo'), world.provider.hits('/oauth/token')]
  return {
    ...signedIn,
    polls: () => world.provider.hits('/oauth/userinfo') - polls,
    refreshes: () => world.provider.hits('/oauth/token') - refreshes,
  }
}

function failedPolls(world: World): number {
  return world.replicas[0]?.log.filter(({ message }) => message === 'session.upkeep_failed').length ?? 0
}

test('claims that change at the provider change the identity headers', async (t) => {
  const { world, told } = await startPolled(t)
  world.provider.bend('/oauth/userinfo', (body) => void (body[fields] = { costCentre: 'CC-1', groups: ['audit'] }))
  assert.equal((await told()).get('x-cost-centre'), 'CC-4711')

  world.moveClock(30_000)

  await until('the application gets the new claim', async () => (await told()).get('x-cost-centre') === 'CC-1')
  assert.equal((await told()).get('x-groups'), 'audit')
})

test('UserInfo without changes is not announced to other replicas, and a change is announced once', async (t) => {
  const { world, ask, told } = await startSignedIn(t, { ...polled, store: 'redis', replicas: 2 })
  const redis = new Redis(world.redis?.port ?? 0)
  t.after(() => redis.disconnect())
  await redis.psubscribe('*')
  let changes = 0
  redis.on('pmessage', (_pattern, _channel, message: string) => {
    if (message.includes('changed')) changes += 1
  })
  // The tokens of a refresh are announced. The claims that are read then are the same as before.
  world.provider.bend('/oauth/token', (body) => void (body['expires_in'] = 3600))
  world.moveClock(11_000)
  const [polls, refreshes] = [world.provider.hits('/oauth/userinfo'), world.provider.hits('/oauth/token')]
  await ask()
  assert.equal(world.provider.hits('/oauth/token') - refreshes, 1)
  assert.equal(world.provider.hits('/oauth/userinfo') - polls, 1)

  world.provider.bend('/oauth/userinfo', (body) => void (body[fields] = { costCentre: 'CC-1', groups: ['audit'] }))
  world.moveClock(30_000)

  await until('the application gets the new claim', async () => (await told()).get('x-cost-centre') === 'CC-1')
  await until('the change was announced', () => changes >= 2)
  assert.equal(changes, 2)
})

test('a person who loses a required claim is denied', async (t) => {
  const { world, jane, ask } = await startPolled(t)
  assert.notEqual((await jane.fetch(`${world.url}/admin/`)).status, 403)
  world.provider.bend('/oauth/userinfo', (body) => void (body[fields] = { groups: [] }))

  world.moveClock(30_000)
  await ask()

  await until('the door is shut', async () => (await jane.fetch(`${world.url}/admin/`)).status === 403)
})

test('many concurrent requests cause one UserInfo request, and none of them waits', async (t) => {
  const { world, ask, polls } = await startPolled(t)
  let release = () => {}
  const asked = new Promise<void>((resolve) => {
    world.provider.fault('/oauth/userinfo', (_req, _res, pass) => {
      release = pass
      resolve()
    })
  })
  world.moveClock(30_000)

  const responses = await Promise.all(Array.from({ length: 50 }, ask))
  await asked
  release()

  assert.deepEqual(new Set(responses.map(({ status }) => status)), new Set([200]))
  assert.equal(polls(), 1)
})

test('an unused session causes no UserInfo request', async (t) => {
  const { world, ask, polls } = await startPolled(t)

  world.moveClock(29 * 60_000)
  assert.equal(polls(), 0)

  await ask()
  await until('it is asked about', () => polls() === 1)
})

test('a revoked access token is refreshed once, and the session continues', async (t) => {
  const { world, ask, polls, refreshes } = await startPolled(t)
  const mend = world.provider.fault('/oauth/userinfo', (_req, res) => {
    mend()
    res.writeHead(401, unauthorized).end()
  })
  world.moveClock(30_000)

  await ask()
  await until('userinfo was read again', () => polls() >= 2)

  assert.equal((await ask()).status, 200)
  assert.equal(refreshes(), 1)
})

test('a session ends when UserInfo rejects the refreshed access token too', async (t) => {
  const { world, ask, refreshes } = await startPolled(t)
  world.provider.fault('/oauth/userinfo', (_req, res) => res.writeHead(401, unauthorized).end())
  world.moveClock(30_000)

  await until('the session has ended', async () => (await ask()).status === 401)

  assert.equal(refreshes(), 1)
  const ended = world.replicas[0]?.log.find(({ message }) => message === 'session.ended')
  assert.equal(ended?.fields['by'], 'userinfo_401')
})

for (const [what, status, body] of [
  ['is down', 503, ''],
  ['is about somebody else', 200, '{"sub":"samir"}'],
  ['is a page', 200, '<html></html>'],
  ['refuses the scope', 403, ''],
] as const)
  test(`userinfo that ${what} changes nothing`, async (t) => {
    const { world, ask, told, polls } = await startPolled(t)
    world.provider.fault('/oauth/userinfo', (_req, res) =>
      res.writeHead(status, { 'content-type': 'application/json' }).end(body),
    )
    world.moveClock(30_000)
    await ask()
    await until('the poll has failed', () => failedPolls(world) === 1)

    const headers = await told()

    assert.deepEqual([headers.get('x-remote-user'), headers.get('x-cost-centre')], ['jane', 'CC-4711'])
    assert.equal(polls(), 1, 'after a failure there is a pause')
  })
