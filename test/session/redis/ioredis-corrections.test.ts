import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { correctIoredis, corrections, testedWith } from '../../../src/session/redis/ioredis-corrections.ts'

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

test('without the corrections of ioredis the store works, and rejects in time when Redis hangs', async (t) => {
  const file = fileURLToPath(new URL('without-corrections.ts', import.meta.url))
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const child = spawn(process.execPath, ['--import', 'tsx', '--test', file], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => child.kill())
  const output: Buffer[] = []
  child.stdout.on('data', (bytes: Buffer) => output.push(bytes))

  const [status] = (await once(child, 'close')) as [number | null]

  assert.equal(status, 0, Buffer.concat(output).toString())
})
