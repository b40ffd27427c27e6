import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { request } from 'undici'
import { loadConfig } from '../../src/config/load.ts'
import { reloadable } from '../../src/server/reloadable.ts'
import { replacePauses } from '../support/pauses.ts'
import { secrets, startWorld } from '../support/world.ts'

function configs(file: string, ...changes: readonly (readonly [from: string, to: string])[][]) {
  const text = readFileSync(file, 'utf8')
  return changes.map((change) => {
    writeFileSync(
      file,
      change.reduce((changed, [from, to]) => changed.replace(from, to), text),
    )
    const loaded = loadConfig(file, secrets)
    assert.ok(loaded.ok)
    return loaded.config
  })
}

test('Of two concurrent reloads, the second one counts, even if the first one has to wait for its provider', async (t) => {
  replacePauses(t, { waitForDependenciesMs: 300 })
  const world = await startWorld(t)
  const [replica] = world.replicas
  assert.ok(replica)
  const [first, second] = configs(
    replica.file,
    [
      ['/static/*', '/first/*'],
      [world.provider.issuer, 'http://127.0.0.1:9'],
    ],
    [['/static/*', '/second/*']],
  )
  assert.ok(first && second)

  await Promise.all([replica.gateway.reload(first), replica.gateway.reload(second)])

  const statusOf = async (path: string) => (await request(`${world.url}${path}`)).statusCode
  assert.deepEqual(await Promise.all([statusOf('/first/a'), statusOf('/second/a')]), [401, 404])
})

test('A reload names a setting that needs a restart until it has its old value again', async (t) => {
  const world = await startWorld(t)
  const [running, larger] = configs(
    world.replicas[0]?.file ?? '',
    [],
    [['version: 1', 'version: 1\nlimits: { header_size: 20kb }']],
  )
  assert.ok(running && larger)

  const first = reloadable(running, larger)
  const second = reloadable(first.config, larger)
  const back = reloadable(second.config, running)

  assert.deepEqual(
    [first, second, back].map(({ needRestart }) => needRestart),
    [['limits.header_size'], ['limits.header_size'], []],
  )
  assert.equal(second.config.limits.headerSizeBytes, running.limits.headerSizeBytes)
})
