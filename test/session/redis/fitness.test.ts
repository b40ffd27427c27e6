import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Redis } from 'ioredis'
import type { SidTag } from '../../../src/core/names.ts'
import { randomToken } from '../../../src/core/random.ts'
import { tryScripts } from '../../../src/session/store/redis/fitness.ts'
import { RedisKeys } from '../../../src/session/store/redis/keys.ts'
import { scripts, type ScriptName } from '../../../src/session/store/redis/scripts.ts'
import { startRedis } from '../../support/redis.ts'

const { port } = await startRedis({ after })
const server = new Redis(port, '127.0.0.1')
after(() => server.disconnect())

/** What the trial finds wrong with a Redis whose script has another result. */
async function faultWith(bent?: ScriptName, result?: unknown): Promise<string | undefined> {
  const tag = randomToken(18) as SidTag
  return tryScripts({
    ...{ server, tag, keys: new RedisKeys(`${tag}:`) },
    run: async (script, places, args) => {
      const real = await server.eval(scripts[script], places.length, ...places, ...args)
      return script === bent ? result : real
    },
  })
}

test('A Redis that runs the scripts is fit', async () => {
  assert.equal(await faultWith(), undefined)
})

for (const [what, script, result] of [
  ['does not list the sessions of a person', 'enterSub', 0],
  ['makes no session', 'create', 0],
  ['makes a session after the Logout Token that ends it', 'create', 1],
  ['does not find the sessions that a Logout Token ends', 'beginEnding', []],
  ['ends no session', 'endSessions', [0, 0]],
] as const)
  test(`A Redis that ${what} is unfit`, async () => {
    assert.equal(await faultWith(script, result), 'its scripts do not end a session as a Logout Token must')
  })
