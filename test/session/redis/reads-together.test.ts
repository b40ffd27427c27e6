import assert from 'node:assert/strict'
import { randomInt, randomUUID } from 'node:crypto'
import { Socket } from 'node:net'
import { after, test, type TestContext } from 'node:test'
import { Redis } from 'ioredis'
import { randomToken } from '../../../src/core/random.ts'
import { RedisKeys } from '../../../src/session/store/redis/keys.ts'
import { maxReadsTogether } from '../../../src/session/store/redis/shared-reads.ts'
import type { NewSession, SessionStore } from '../../../src/session/store/store.ts'
import { freePort } from '../../support/free-port.ts'
import { inTime } from '../../support/in-time.ts'
import { clusterConfig, startCluster } from '../../support/redis-cluster.ts'
import { commandsDuring, type RedisServer, startRedis } from '../../support/redis.ts'
import { assertUnavailable, hastyMs, hearing, open, responds, settings, tick } from '../redis-stores.ts'
import { created, newSession, times, until } from '../store-contract.ts'

const unavailable = { code: 'ERR_STORE_UNAVAILABLE' }
const [shared, oneNode, cluster] = await Promise.all([
  startRedis({ after }),
  startClusterOfOne(),
  startCluster({ after }),
])

/** A Redis that has all slots of a Cluster, so it rejects a command with keys of several slots. */
async function startClusterOfOne(): Promise<RedisServer> {
  const [port, bus] = [await freePort(), await freePort()]
  const id = '0'.repeat(40)
  const server = await startRedis(
    { after },
    {
      port,
      files: {
        'nodes.conf': `${id} 127.0.0.1:${port}@${bus} myself,master - 0 0 1 connected 0-16383\nvars currentEpoch 1 lastVoteEpoch 0\n`,
      },
      args: ['--cluster-enabled', 'yes', '--cluster-port', String(bus)],
    },
  )
  const admin = adminOf(server)
  await until(tick, async () => String(await admin.cluster('INFO')).includes('cluster_state:ok'))
  admin.disconnect()
  return server
}

function adminOf({ port }: RedisServer): Redis {
  return new Redis(port, '127.0.0.1', { enableReadyCheck: false })
}

interface Opened {
  readonly store: SessionStore
  readonly keys: RedisKeys
}

async function openAt(t: TestContext, { port }: RedisServer, timeoutMs = settings.timeoutMs): Promise<Opened> {
  const url = new URL(`redis://127.0.0.1:${port}`)
  return opened(t, { ...settings, kind: 'redis' as const, url, timeoutMs })
}

async function openCluster(t: TestContext): Promise<Opened> {
  return opened(t, { ...clusterConfig(cluster) })
}

async function opened(t: TestContext, config: Parameters<typeof open>[1]): Promise<Opened> {
  const keyPrefix = `${randomToken(6)}:`
  const { store } = open(t, { ...config, keyPrefix })
  await hearing(store)
  return { store, keys: new RedisKeys(keyPrefix) }
}

/** Sessions that differ in all that a read returns. */
async function manySessions(store: SessionStore, count: number): Promise<readonly (NewSession & Stored)[]> {
  return Promise.all(
    times(count, async (n) => {
      const session = await created(store, Date.now(), { idle_timeout: 100_000 + 1_000 * n })
      const sealed = Buffer.from(`${n} ${randomUUID()} ${'x'.repeat(randomInt(3_000))}`)
      for (let version = 1; version <= n % 3; version += 1) await store.replace(session.key, sealed, version)
      return { ...session, sealed: n % 3 === 0 ? session.sealed : sealed, version: 1 + (n % 3) }
    }),
  )
}

interface Stored {
  readonly version: number
}

/** Reads a session and asserts that it is this one. */
async function readOwn(store: SessionStore, session: NewSession & Stored): Promise<void> {
  const read = await store.read(session.key)
  assert.equal(String(read?.sealed), String(session.sealed))
  assert.equal(read?.version, session.version)
  assert.ok(Math.abs((read?.expiresIn ?? 0) - session.idle_timeout) < 30_000, `${read?.expiresIn}`)
}

function randomOf<T>(all: readonly T[]): T {
  return all[randomInt(all.length)] as T
}

/** How many sessions each command of the script `read` asks for. */
function readsIn(commands: readonly (readonly string[])[]): readonly number[] {
  const isRead = ([name = '', , , first = '']: readonly string[]) => name.startsWith('eval') && first.includes('}:s:')
  return commands.filter(isRead).map(([, , count]) => Number(count))
}

const singles = [
  ['a single primary', shared],
  ['one address that rejects keys of several slots', oneNode],
] as const

for (const [name, at] of [
  ...singles.map(([name, server]) => [name, (t: TestContext) => openAt(t, server)] as const),
  ['a Cluster', openCluster] as const,
])
  test(`each read of a turn gets its own session, or none: ${name}`, async (t) => {
    const { store } = await at(t)
    const sessions = await manySessions(store, 150)
    const unknown = times(20, () => newSession(Date.now()))

    for (let round = 0; round < 60; round += 1)
      await Promise.all(
        times(randomInt(1, 3 * maxReadsTogether), async () => {
          if (randomInt(5) === 0) assert.equal(await store.read(randomOf(unknown).key), undefined)
          else await readOwn(store, randomOf(sessions))
        }),
      )
  })

for (const [name, server] of singles)
  test(`a key with another type fails its own read only: ${name}`, async (t) => {
    const { store, keys } = await openAt(t, server)
    const sessions = await manySessions(store, 10)
    const broken = newSession(Date.now())
    const admin = adminOf(server)
    t.after(() => admin.disconnect())
    await admin.set(keys.sessionAt(broken.key), 'no hash')

    for (let round = 0; round < 3; round += 1)
      await Promise.all([
        ...sessions.map((session) => readOwn(store, session)),
        assert.rejects(store.read(broken.key), { ...unavailable, message: /WRONGTYPE/ }),
        ...sessions.map((session) => readOwn(store, session)),
      ])
    await assert.rejects(store.read(broken.key), { ...unavailable, message: /WRONGTYPE/ })
    const seen = await commandsDuring(server, () => Promise.all(sessions.map((session) => readOwn(store, session))))
    assert.deepEqual(readsIn(seen), server === shared ? [10] : times(10, () => 1))
  })

test('when Redis rejects keys of several slots, no read is lost, and commands with several keys are sent once', async (t) => {
  const { store } = await openAt(t, oneNode)
  const sessions = await manySessions(store, 12)
  const readAll = () => Promise.all(sessions.map((session) => readOwn(store, session)))

  const first = await commandsDuring(oneNode, readAll)
  const second = await commandsDuring(oneNode, readAll)

  // MONITOR does not show a command that was rejected.
  assert.deepEqual(
    readsIn(first),
    times(12, () => 1),
  )
  assert.deepEqual(
    readsIn(second),
    times(12, () => 1),
  )
  const admin = adminOf(oneNode)
  t.after(() => admin.disconnect())
  await admin.config('RESETSTAT')
  await readAll()
  assert.doesNotMatch(await admin.info('errorstats'), /CROSSSLOT/)
})

test('many reads of one turn are sent in parts, so that no time limit begins long before its write', async (t) => {
  const { store } = await openAt(t, shared)
  const sessions = await manySessions(store, 100)

  const seen = await commandsDuring(shared, () =>
    Promise.all(times(500, (n) => readOwn(store, sessions[n % 100] as (typeof sessions)[0]))),
  )

  assert.deepEqual(readsIn(seen), [...times(7, () => maxReadsTogether), 500 - 7 * maxReadsTogether])
})

test('reads that wait to be sent are rejected when the store is closed', async (t) => {
  const { store } = await openAt(t, shared)
  const { key } = await created(store, Date.now())

  const rejected = times(200, () => assert.rejects(store.read(key), unavailable))
  await Promise.all([...rejected, store.close()])
})

test('while Redis hangs, all reads of a turn are rejected in time', async (t) => {
  const server = await startRedis(t)
  const { store } = await openAt(t, server, hastyMs)
  const sessions = await manySessions(store, 150)
  server.freeze()

  await inTime(2 * hastyMs, () =>
    Promise.all(sessions.map(({ key }) => assert.rejects(store.read(key), assertUnavailable))),
  )

  server.resume()
  await until(tick, () => responds(store))
  await Promise.all(sessions.map((session) => readOwn(store, session)))
})

for (const [name, server] of singles)
  test(`when the connection is lost while reads are sent, all are rejected, and the next one serves: ${name}`, async (t) => {
    const { store } = await openAt(t, server)
    const sessions = await manySessions(store, 20)
    const readAll = () => Promise.all(sessions.map((session) => readOwn(store, session)))
    await readAll()
    const { write } = Socket.prototype
    const losing = t.mock.method(Socket.prototype, 'write', function writeAndLose(this: Socket, ...args: unknown[]) {
      const isWritten = Reflect.apply(write, this, args) as boolean
      if (this.remotePort === server.port && String(args[0]).includes('}:s:')) this.destroy()
      return isWritten
    })

    await Promise.all(sessions.map(({ key }) => assert.rejects(store.read(key), assertUnavailable)))
    losing.mock.restore()

    await until(tick, () => responds(store))
    await readAll()
  })
