import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startWorld } from '../support/world.ts'

test('Any unknown name below the reserved prefix gets 404', async (t) => {
  const { url } = await startWorld(t)

  for (const name of ['constructor', 'toString', '__proto__', 'hasOwnProperty', 'nothing', ''])
    assert.equal((await fetch(`${url}/.gatehouse/${name}`)).status, 404, name)
})

test('The gateway tells an unsupported method from an unknown path', async (t) => {
  const { url } = await startWorld(t)

  const notAllowed = await fetch(`${url}/.gatehouse/session`, { method: 'DELETE' })
  assert.equal(notAllowed.status, 405)
  assert.equal(notAllowed.headers.get('allow'), 'GET, HEAD, POST')
  assert.equal((await fetch(`${url}/.GATEHOUSE/session`)).status, 404)
})
