import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { correctIoredis, corrections, testedWith } from '../../../src/session/redis/ioredis-corrections.ts'
import { startRedis } from '../../support/redis.ts'
import { times } from '../store-contract.ts'

test('the corrections of ioredis were tested with the installed version, and all of them fit', () => {
  const { version } = createRequire(import.meta.url)('ioredis/package.json') as { version: string }
  assert.match(version, testedWith, 'Read the members that the corrections replace, then change testedWith.')
  assert.deepEqual(corrections.corrected, ['setSocketTimeout', 'setTimeout', 'sendCommand'])
})

test('an ioredis without the corrected methods stays as it is', () => {
  class Client {}
  class Command {
    reject() {}
  }
  const { corrected, undo } = correctIoredis({ Redis: Client, Command })
  assert.deepEqual(corrected, [])
  assert.deepEqual(Object.getOwnPropertyNames(Command.prototype), ['constructor', 'reject'])
  undo()
  assert.deepEqual(Object.getOwnPropertyNames(Client.prototype), ['constructor'])
})

test('commands that are sent at the same time are written together, and in their order', async (t) => {
  const server = await startRedis(t)
  const redis = new Redis(server.port, '127.0.0.1')
  t.after(() => redis.disconnect())
  await once(redis, 'ready')
  const writes = (['_write', '_writev'] as const).map((name) => t.mock.method(redis.stream, name as '_write'))

  const lengths = await Promise.all(times(8, (n) => redis.rpush('list', n)))

  assert.deepEqual(lengths, [1, 2, 3, 4, 5, 6, 7, 8])
  assert.equal(
    writes.reduce((sum, { mock }) => sum + mock.callCount(), 0),
    1,
  )
  assert.equal(await redis.llen('list'), 8, 'a later command is written too')
})
