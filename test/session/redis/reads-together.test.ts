import assert from 'node:assert/strict'
import { Socket } from 'node:net'
import { after, test, type TestContext } from 'node:test'
import { randomToken } from '../../../src/core/random.ts'
import { startRedis } from '../../support/redis.ts'
import { hearing, open, responds, settings, tick } from '../redis-stores.ts'
import { created, times, until } from '../store-contract.ts'

const redis = await startRedis({ after })

async function openWithSession(t: TestContext) {
  const url = new URL(`redis://127.0.0.1:${redis.port}`)
  const { store } = open(t, { ...settings, kind: 'redis', url, keyPrefix: `${randomToken(6)}:` })
  await hearing(store)
  return { store, key: (await created(store, Date.now())).key }
}

const unavailable = { code: 'ERR_STORE_UNAVAILABLE' }

test('reads that wait to be sent are rejected when the store is closed', async (t) => {
  const { store, key } = await openWithSession(t)

  const rejected = times(20, () => assert.rejects(store.read(key), unavailable))
  await Promise.all([...rejected, store.close()])
})

test('when the connection is lost while reads are sent, all are rejected, and the next connection serves', async (t) => {
  const { store, key } = await openWithSession(t)
  const cork = Socket.prototype.cork
  const losing = t.mock.method(Socket.prototype, 'cork', function corkAndLose(this: Socket) {
    cork.call(this)
    this.destroy()
  })

  await Promise.all(times(20, () => assert.rejects(store.read(key), unavailable)))
  assert.equal(losing.mock.callCount(), 1)
  losing.mock.restore()

  await until(tick, () => responds(store))
  assert.notEqual(await store.read(key), undefined)
})

test('many reads of one turn are sent in parts, so that no time limit begins long before its write', async (t) => {
  const { store, key } = await openWithSession(t)
  const corked = t.mock.method(Socket.prototype, 'cork')

  const found = await Promise.all(times(1_200, () => store.read(key)))

  assert.ok(found.every((session) => session !== undefined))
  assert.equal(corked.mock.callCount(), 3)
})
