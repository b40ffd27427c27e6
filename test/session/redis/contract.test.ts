import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after } from 'node:test'
import { Redis } from 'ioredis'
import { systemClock } from '../../../src/core/clock.ts'
import { randomToken } from '../../../src/core/random.ts'
import { root } from '../../support/command.ts'
import { startRedis } from '../../support/redis.ts'
import { hearing, open, settings, sizeOf, tick } from '../redis-stores.ts'
import { storeContract } from '../store-contract.ts'

/** The rights of the user in docs/redis.md that has only the commands of the gateway. */
const rights = /^ACL SETUSER gatehouse on >PASSWORD ~gatehouse:\* &gatehouse:\* (-@all (?:.|\\\n)*)$/m
  .exec(readFileSync(join(root, 'docs', 'redis.md'), 'utf8'))?.[1]
  ?.replaceAll('\\\n', ' ')
  .split(/\s+/)
const args = ['--user', 'gatehouse', 'on', '>pass', '~*', '&*', ...(rights ?? [])]
const server = await startRedis({ after }, { args })
const admin = new Redis(server.port, '127.0.0.1')
after(() => admin.disconnect())

// Also with no right but those that the page lists.
storeContract('redis', async (t) => {
  const keyPrefix = `${randomToken(6)}:`
  const user = { username: 'gatehouse', password: 'pass' }
  const opened = open(t, { ...settings, kind: 'redis', url: new URL(server.url), keyPrefix, ...user })
  await hearing(opened.store)
  return { store: opened.store, now: systemClock.now, tick, size: () => sizeOf(admin, opened) }
})
