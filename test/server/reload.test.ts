import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { loadConfig } from '../../src/config/load.ts'
import { changed } from '../support/changed-file.ts'
import { restorePauses, setPauses } from '../support/pauses.ts'
import { openWebSocket } from '../support/streams.ts'
import { until } from '../support/until.ts'
import { secrets, startWorld, type Replica } from '../support/world.ts'

describe('A reload', { concurrency: true }, () => {
  // The check of every five seconds would close the streams too.
  before(() => setPauses({ checkStreamsMs: 600_000 }))
  after(restorePauses)

  test('keeps a WebSocket open, and a later Logout Token closes it', async (t) => {
    const world = await startWorld(t)
    const [replica] = world.replicas as [Replica]
    const jane = world.browser()
    await jane.get(`${world.url}/echo`)
    const socket = await openWebSocket(t, `${world.url}/ws`, jane.cookieHeader)

    await replica.gateway.reload(changed(replica, '/static/*', '/open/*'))

    await socket.echo('still here')
    const [session] = world.provider.sessions()
    const logout_token = await world.provider.logoutToken({ sid: session?.sid ?? '', sub: 'jane' })
    assert.equal((await world.postLogoutToken({ logout_token })).status, 200)
    assert.equal(await socket.closing, '1008 session ended')
  })

  for (const [what, from, to] of [
    ['another client_id', 'client_id: orders', 'client_id: others'],
    ['a key taken away', '{ env: SESSION_KEY }', '{ env: OTHER_KEY }'],
  ] as const)
    test(`to ${what} closes the streams of sessions that are no longer valid`, async (t) => {
      const world = await startWorld(t)
      const [replica] = world.replicas as [Replica]
      const jane = world.browser()
      await jane.get(`${world.url}/echo`)
      const socket = await openWebSocket(t, `${world.url}/ws`, jane.cookieHeader)
      writeFileSync(replica.file, readFileSync(replica.file, 'utf8').replace(from, to))
      const loaded = loadConfig(replica.file, { ...secrets, OTHER_KEY: Buffer.alloc(32, 8).toString('base64') })
      assert.ok(loaded.ok)

      await replica.gateway.reload(loaded.config)

      assert.equal((await jane.fetch(`${world.url}/echo`)).status, 401)
      assert.equal(await socket.closing, '1008 session ended')
    })

  test('leaks nothing when it is repeated', async (t) => {
    const world = await startWorld(t, { providerSettings: 'timeout: 600ms' })
    const [replica] = world.replicas as [Replica]
    const jane = world.browser()
    await jane.get(`${world.url}/echo`)
    const [one, other] = [changed(replica, '/static/*', '/open/*'), changed(replica, '/open/*', '/static/*')]
    const times = Number(process.env['RELOADS'] ?? 24)
    const reload = async (count: number) => {
      for (let at = 0; at < count; at += 2) {
        await replica.gateway.reload(one)
        await jane.get(`${world.url}/echo`)
        await replica.gateway.reload(other)
      }
    }
    const resources = () => process.getActiveResourcesInfo().length
    await reload(2)
    const before = { resources: resources(), families: replica.metrics.collect().length }

    await reload(times)

    await until('all that was for the others is let go', () => resources() <= before.resources)
    assert.equal(replica.metrics.collect().length, before.families)
    assert.equal((await jane.fetch(`${world.url}/echo`)).status, 200)
    assert.equal(world.provider.sessions().length, 1)
  })
})
