import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { correctIoredis, corrections, testedWith } from '../../../src/session/store/redis/ioredis-corrections.ts'

test('the corrections of ioredis were tested with the installed version, and all of them fit', () => {
  const { version } = createRequire(import.meta.url)('ioredis/package.json') as { version: string }
  assert.match(version, testedWith, 'Read the members that the corrections replace, then change testedWith.')
  assert.deepEqual(corrections.corrected, ['setSocketTimeout', 'setTimeout'])
})

test('an ioredis without the corrected methods stays as it is', () => {
  class Redis {}
  class Command {
    reject() {}
  }
  const { corrected, undo } = correctIoredis({ Redis, Command })
  assert.deepEqual(corrected, [])
  assert.deepEqual(Object.getOwnPropertyNames(Command.prototype), ['constructor', 'reject'])
  undo()
  assert.deepEqual(Object.getOwnPropertyNames(Redis.prototype), ['constructor'])
})
