import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { Script } from 'node:vm'
import { startWorld } from '../support/world.ts'

test('A gateway that serves has fast strings, although ioredis extends String', async (t) => {
  setFlagsFromString('--allow-natives-syntax')
  const areFast = () => new Script('%HasFastProperties(String.prototype)').runInThisContext() as boolean

  await startWorld(t)
  assert.equal(areFast(), true)
  class Text extends String {}
  assert.equal(new Text('text').slice(1), 'ext')
  assert.equal(areFast(), true, 'a class that extends String later')
})
