// Slow: 6 s, gateways are killed and leases expire
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { Redis } from 'ioredis'
import { Browser } from '../support/browser.ts'
import { startCommand } from '../support/command.ts'
import { prepareGateway, prepareReplica, type Surroundings } from '../support/gateway-process.ts'
import { expireLeases } from '../support/leases.ts'
import { startRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

/** The longest time for which a session is locked according to the documentation, in ms. */
const lease = 5_000

/**
 * Two gateways in separate processes. Jane is signed in, and her access token lives for two
 * seconds.
 */
async function twoGateways(t: TestContext) {
  const redis = await startRedis(t)
  const direct = new Redis(redis.port, '127.0.0.1')
  t.after(() => direct.disconnect())
  const around = await prepareGateway(t, { store: `{ redis: { url: "${redis.url}" } }` })
  const replica = await prepareReplica(around)
  const start = async ({ file, env }: Surroundings) => {
    const gateway = startCommand(t, ['run', '--config', file], { env })
    await gateway.said('gatehouse is ready')
    return gateway
  }
  const [first] = await Promise.all([start(around), start(replica)])
  const { provider } = around
  provider.bend('/oauth/token', (body) => (body['expires_in'] = 2))
  const jane = new Browser('jane')
  await jane.get(`${around.url}/`)
  const signedInAt = performance.now()
  const before = provider.hits('/oauth/token')
  return {
    provider,
    jane,
    refreshes: () => provider.hits('/oauth/token') - before,
    /**
     * Sends requests to the first gateway until `holds` is true. Requests that wait for the new
     * token get no response.
     */
    askFirstUntil: async (holds: () => boolean) => {
      const seen = until('the first one refreshes', holds)
      while (!holds()) await Promise.race([seen, jane.fetch(`${around.url}/`).catch(() => seen)])
    },
    askSecond: () => jane.fetch(`${replica.url}/`),
    /** The time for which no other process may refresh, in ms. */
    locked: async () => {
      const [place = ''] = await direct.keys('*:l:*')
      return direct.pttl(place)
    },
    leaseEnds: () => expireLeases(redis),
    /** From then on, each request waits for a new token. */
    tokenExpires: () => until('the access token has expired', () => performance.now() - signedInAt > 2_000),
    kill: async () => {
      process.kill(first.pid, 'SIGKILL')
      assert.equal(await first.ended, 'SIGKILL')
    },
    visitAfterRestart: async () => {
      await start(around)
      return jane.get(`${around.url}/`)
    },
  }
}

test('A gateway that is killed during a refresh locks the session until the lease ends, and no longer', async (t) => {
  const { provider, refreshes, askFirstUntil, askSecond, locked, leaseEnds, kill } = await twoGateways(t)
  provider.fault('/oauth/token', () => {})
  await askFirstUntil(() => refreshes() === 1)

  await kill()
  provider.bend('/oauth/token', (body) => (body['expires_in'] = 3600))
  // If the access token has expired meanwhile, this request waits for the lease.
  const asking = askSecond()
  const left = await locked()
  assert.ok(left > 0 && left <= lease, `${left} ms`)
  assert.equal(refreshes(), 1)
  await leaseEnds()
  assert.equal((await asking).status, 200)
  while (refreshes() === 1) assert.equal((await askSecond()).status, 200)

  assert.equal((await askSecond()).status, 200)
  assert.equal(refreshes(), 2)
})

test('A token that the provider rotated is lost with the killed gateway, and the person signs in once more', async (t) => {
  const { provider, jane, refreshes, askFirstUntil, askSecond, tokenExpires, leaseEnds, kill, visitAfterRestart } =
    await twoGateways(t)
  let hasRotated = false
  const mend = provider.fault('/oauth/token', (_req, res, pass) => {
    res.writeHead = () => res
    res.end = (() => (hasRotated = true)) as never
    pass()
  })
  await askFirstUntil(() => hasRotated)

  await kill()
  mend()
  await tokenExpires()
  await leaseEnds()
  await until('the session is over', async () => (await askSecond()).status === 401)

  assert.equal(refreshes(), 2)
  assert.equal(jane.cookies.has('gatehouse'), false)
  assert.equal((await visitAfterRestart()).body, 'for jane')
})
