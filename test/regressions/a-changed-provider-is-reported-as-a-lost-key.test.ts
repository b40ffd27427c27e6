import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { loadConfig } from '../../src/config/load.ts'
import { secrets, startWorld } from '../support/world.ts'

test('After a reload with another client_id, the log says why the session of a person is not accepted', async (t) => {
  const world = await startWorld(t)
  const [replica] = world.replicas
  assert.ok(replica)
  const jane = world.browser()
  assert.equal((await jane.get(`${world.url}/echo`)).status, 200)
  const yaml = readFileSync(replica.file, 'utf8')
  writeFileSync(replica.file, yaml.replace('client_id: orders', 'client_id: orders-2'))
  const loaded = loadConfig(replica.file, secrets)
  assert.ok(loaded.ok)
  await replica.gateway.reload(loaded.config)

  assert.notEqual((await jane.send(`${world.url}/echo`)).status, 200)

  const line = replica.log.find(({ message }) => message === 'session.unreadable')
  assert.match(String(line?.fields['hint']), /issuer or client_id/)
})
