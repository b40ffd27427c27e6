import assert from 'node:assert/strict'
import { request } from 'node:http'
import { test, type TestContext } from 'node:test'
import { Redis } from 'ioredis'
import type { Visit } from '../support/browser.ts'
import { replacePauses } from '../support/pauses.ts'
import { until } from '../support/until.ts'
import { shortLived, startSignedIn } from './signed-in.ts'

const expired = 11_000
const soon = 8_000

/**
 * The provider fails; her access token is good for so many more ms, of the last five minutes of an
 * hour, which are for refreshing.
 */
async function startFailing(t: TestContext, leftMs: number) {
  const { world, ask, refreshes } = await startSignedIn(t, { session: 'refresh_before: 5m\n  idle_timeout: 8h' })
  world.provider.bend('/oauth/token', (body) => void (body['expires_in'] = 3600))
  world.moveClock(expired)
  await ask()
  const before = refreshes()
  world.provider.fault('/oauth/token', (_req, res) => res.writeHead(500).end())
  world.moveClock(3600_000 - leftMs)
  return { world, ask, failed: () => refreshes() - before }
}

test('while the provider fails no session ends, and refreshes work again after it', async (t) => {
  const { world, jane, ask } = await startSignedIn(t)
  world.provider.fault('/oauth/token', (_req, res) => res.writeHead(500).end())
  world.moveClock(expired)

  const during = await ask()
  world.provider.bend('/oauth/token', shortLived)
  world.moveClock(1_000)
  const after = await ask()

  assert.equal(during.status, 503)
  assert.ok(during.headers['retry-after'])
  assert.ok(jane.cookies.has('gatehouse'), 'the cookie was kept')
  assert.equal(after.status, 200)
})

test('not every request asks a provider that is down', async (t) => {
  const { world, ask, refreshes } = await startSignedIn(t)
  world.provider.fault('/oauth/token', (_req, res) => res.writeHead(500).end())
  world.moveClock(expired)

  for (let turn = 0; turn < 20; turn += 1) assert.equal((await ask()).status, 503)

  assert.equal(refreshes(), 1)
})

test('while the provider fails, work beside requests is tried with growing pauses', async (t) => {
  const { world, ask, failed } = await startFailing(t, 4 * 60_000)

  for (let second = 0; second < 60; second += 1) {
    assert.equal((await ask()).status, 200)
    await until('the attempt, if there was one, is over', () => idle(world))
    world.moveClock(1_000)
  }

  // 1, 2, 4, 8, 16 and 32 seconds apart.
  assert.equal(failed(), 6)
})

test('a waiting request is served a second after the provider is back', async (t) => {
  const { world, ask, failed } = await startFailing(t, 2 * 60_000)
  // Beside requests it is tried 1, 2, 4, 8, 16 and 32 s apart, and not again for a minute.
  for (const second of [0, 1, 2, 4, 8, 16, 32]) {
    world.moveClock(second * 1_000)
    assert.equal((await ask()).status, 200)
    await until('the attempt is over', () => idle(world))
  }
  assert.equal(failed(), 7)

  world.moveClock(58_000)
  const during = await ask()
  world.provider.bend('/oauth/token', shortLived)
  world.moveClock(1_000)

  assert.equal(during.status, 503)
  assert.equal((await ask()).status, 200)
})

test('a session ends when UserInfo rejects an access token that was just issued', async (t) => {
  const { world, ask, refreshes } = await startSignedIn(t)
  world.provider.fault('/oauth/userinfo', (_req, res) => res.writeHead(401).end())
  world.moveClock(expired)

  assert.equal((await ask()).status, 401)

  assert.equal(refreshes(), 1)
  const ended = world.replicas[0]?.log.find(({ message }) => message === 'session.ended')
  assert.equal(ended?.fields['by'], 'userinfo_401')
})

test('a rejected refresh ends the session and expires its cookie', async (t) => {
  const { world, jane, ask } = await startSignedIn(t)
  world.provider.fault('/oauth/token', (_req, res) =>
    res.writeHead(400, { 'content-type': 'application/json' }).end('{"error":"invalid_grant"}'),
  )
  world.moveClock(expired)

  assert.equal((await ask()).status, 401)

  assert.equal(jane.cookies.has('gatehouse'), false)
  const ended = world.replicas[0]?.log.find(({ message }) => message === 'session.ended')
  assert.equal(ended?.fields['by'], 'invalid_grant')
})

test('a lost refresh response costs one sign-in at most, and never a loop', async (t) => {
  const { world, jane, ask, refreshes } = await startSignedIn(t)
  // The provider has rotated the refresh token, but the response is lost.
  const mend = world.provider.fault('/oauth/token', (req, res, pass) => {
    res.end = (() => res.destroy()) as typeof res.end
    res.writeHead = () => res
    pass()
    req.resume()
  })
  world.moveClock(expired)
  assert.equal((await ask()).status, 503)
  mend()
  world.moveClock(1_000)

  assert.equal((await ask()).status, 401)

  assert.equal(refreshes(), 2)
  assert.equal((await jane.get(`${world.url}/echo`)).status, 200)
})

test('requests during a slow refresh wait for that one refresh', async (t) => {
  const { world, ask, refreshes } = await startSignedIn(t)
  const { asked, release } = heldRefresh(world)
  world.moveClock(expired)

  const waiting = [ask(), ask(), ask()]
  await asked
  world.moveClock(20_000)
  waiting.push(ask(), ask())
  release()

  assert.deepEqual(new Set((await Promise.all(waiting)).map(({ status }) => status)), new Set([200]))
  assert.equal(refreshes(), 1)
})

test('a provider that takes 20 s is waited for when provider.timeout allows it, and the lease lasts', async (t) => {
  replacePauses(t, { leaseMs: 2_500 })
  const options = { store: 'redis', replicas: 2, providerSettings: 'timeout: 30s' } as const
  const { world, jane, refreshes } = await startSignedIn(t, options)
  const direct = new Redis(world.redis?.port ?? 0, '127.0.0.1')
  t.after(() => direct.disconnect())
  const [first, second] = world.replicas.map(
    ({ url }) =>
      () =>
        jane.fetch(`${url}/echo`),
  ) as [Ask, Ask]
  const { asked, release } = heldRefresh(world)
  world.moveClock(expired)

  const waiting = [first(), first()]
  await asked
  waiting.push(second(), second())
  world.moveClock(20_000)
  // The clock of Redis cannot be moved, so the test waits for longer than the lease.
  const begun = performance.now()
  await until('a lease would have been over', async () => {
    assert.equal((await direct.keys('*:l:*')).length, 1)
    return performance.now() - begun > 2_800
  })
  assert.equal(refreshes(), 1)
  release()

  assert.deepEqual(new Set((await Promise.all(waiting)).map(({ status }) => status)), new Set([200]))
  assert.equal(refreshes(), 1)
})

test('when the provider takes longer than provider.timeout, requests get 503 and no session ends', async (t) => {
  const { world, jane, ask, refreshes } = await startSignedIn(t, { providerSettings: 'timeout: 1s' })
  heldRefresh(world)
  world.moveClock(expired)

  const during = await ask()
  world.provider.bend('/oauth/token', shortLived)
  world.moveClock(1_000)

  assert.equal(during.status, 503)
  assert.ok(during.headers['retry-after'])
  assert.ok(jane.cookies.has('gatehouse'), 'the cookie was kept')
  assert.equal((await ask()).status, 200)
  assert.equal(refreshes(), 2)
})

test('a response after provider.timeout is lost, and a rotated token then costs a sign-in', async (t) => {
  const { world, jane, ask, refreshes } = await startSignedIn(t, { providerSettings: 'timeout: 1s' })
  let deliver = () => {}
  const rotated = new Promise<void>((resolve) => {
    world.provider.fault('/oauth/token', (_req, res, pass) => {
      const end = res.end.bind(res)
      res.end = ((body: Buffer) => {
        deliver = () => void end(body)
        resolve()
      }) as never
      pass()
    })
  })
  world.moveClock(expired)
  assert.equal((await ask()).status, 503)
  await rotated
  deliver()
  world.provider.bend('/oauth/token', shortLived)
  world.moveClock(1_000)

  assert.equal((await ask()).status, 401)

  assert.equal(refreshes(), 2)
  assert.equal((await jane.get(`${world.url}/echo`)).status, 200)
})

test('a client that disconnects during a refresh loses nothing', async (t) => {
  const { world, jane, ask, refreshes } = await startSignedIn(t)
  const { asked, release } = heldRefresh(world)
  world.moveClock(expired)
  const impatient = request(`${world.url}/echo`, { headers: { cookie: jane.cookieHeader } }).on('error', () => {})
  impatient.end()
  await asked

  impatient.destroy()
  release()

  assert.equal((await ask()).status, 200)
  assert.equal(refreshes(), 1)
})

for (const [what, change] of [
  ['of nobody we know', (id_token: string) => id_token.replace(/[^.]{8}$/, 'AAAAAAAA')],
  ['that is not signed', (id_token: string) => id_token.replace(/[^.]*$/, '')],
  ['of somebody else', (id_token: string) => withSub(id_token, 'samir')],
  ['that is garbage', () => 'garbage'],
] as const)
  test(`a refresh that brings an ID Token ${what} changes nothing about who the session is`, async (t) => {
    const { world, told, refreshes } = await startSignedIn(t)
    world.provider.bend('/oauth/token', (body) => void (body['id_token'] = change(String(body['id_token']))))
    world.moveClock(soon)

    assert.equal((await told()).get('x-remote-user'), 'jane')
    await until('the refresh was refused', () => refused(world))

    assert.equal((await told()).get('x-remote-user'), 'jane')
    assert.equal(refreshes(), 1)
  })

test('a refresh without an ID Token is accepted', async (t) => {
  const { world, ask, refreshes } = await startSignedIn(t)
  world.provider.bend('/oauth/token', (body) => {
    delete body['id_token']
    shortLived(body)
  })

  for (let turn = 1; turn <= 2; turn += 1) {
    world.moveClock(expired)
    assert.equal((await ask()).status, 200)
    assert.equal(refreshes(), turn)
  }
})

test('a refresh brings the claims up to date', async (t) => {
  const { world, told } = await startSignedIn(t)
  assert.equal((await told()).get('x-cost-centre'), 'CC-4711')
  world.provider.bend('/oauth/userinfo', (body) => void Object.assign(body, { [fields]: { costCentre: 'CC-1' } }))
  world.moveClock(expired)

  assert.equal((await told()).get('x-cost-centre'), 'CC-1')
})

test('a refresh keeps the claims when UserInfo fails', async (t) => {
  const { world, told } = await startSignedIn(t)
  world.provider.fault('/oauth/userinfo', (_req, res) => res.writeHead(500).end())
  world.moveClock(expired)

  assert.equal((await told()).get('x-cost-centre'), 'CC-4711')
})

const fields = 'https://id.example.com/claims/fields'

function withSub(id_token: string, sub: string): string {
  const [header, payload = '', signature] = id_token.split('.')
  const claims = { ...(JSON.parse(Buffer.from(payload, 'base64url').toString()) as object), sub }
  return [header, Buffer.from(JSON.stringify(claims)).toString('base64url'), signature].join('.')
}

type Ask = () => Promise<Visit>

/** The next question for a new token reaches the provider when it is released. */
function heldRefresh(world: World): { readonly asked: Promise<void>; release(): void } {
  let release = () => {}
  const asked = new Promise<void>((resolve) => {
    world.provider.fault('/oauth/token', (_req, _res, pass) => {
      release = pass
      resolve()
    })
  })
  return { asked, release: () => release() }
}

type World = Awaited<ReturnType<typeof startSignedIn>>['world']

function refused(world: World): boolean {
  return world.replicas[0]?.log.some(({ message }) => message === 'session.upkeep_failed') ?? false
}

/** Every attempt that reached the provider has been noted as failed. */
function idle(world: World): boolean {
  const failed = world.replicas[0]?.log.filter(({ message }) => message === 'session.upkeep_failed').length ?? 0
  return world.provider.hits('/oauth/token') - 2 === failed
}
