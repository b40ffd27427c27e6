// Slow: 4 s, gateways are killed and start again with their file
import assert from 'node:assert/strict'
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { Browser } from '../support/browser.ts'
import { startCommand } from '../support/command.ts'
import { prepareGateway, prepareReplica, type Surroundings } from '../support/gateway-process.ts'
import { basic, makeKey, send } from '../support/key-world.ts'
import { press } from '../support/session-page.ts'
import { until } from '../support/until.ts'

const start = async (t: TestContext, { file, env }: Surroundings) => {
  const gateway = startCommand(t, ['run', '--config', file], { env })
  return { gateway, ready: await gateway.said('gatehouse is ready') }
}

const stop = async ({ gateway }: Awaited<ReturnType<typeof start>>, signal: NodeJS.Signals) => {
  process.kill(gateway.pid, signal)
  await gateway.ended
}

test('People stay signed in over a restart and over SIGKILL, and a logout is not undone', async (t) => {
  const around = await prepareGateway(t, { store: '{ file: sessions.db }', settings: 'workers: 4' })
  const first = await start(t, around)
  assert.equal(first.ready['store'], 'file')
  const [jane, laptop] = [new Browser('jane'), new Browser('jane')]
  await jane.get(`${around.url}/`)
  await laptop.get(`${around.url}/`)
  const [ofJane] = around.provider.sessions()

  await stop(first, 'SIGKILL')
  const second = await start(t, around)

  assert.equal((await jane.fetch(`${around.url}/`)).status, 200)
  assert.equal((await laptop.fetch(`${around.url}/`)).status, 200)
  assert.equal((await around.provider.endSession(ofJane?.sid ?? '')).kind, 'delivered')
  assert.equal((await jane.fetch(`${around.url}/`)).status, 401)

  await stop(second, 'SIGTERM')
  await start(t, around)

  assert.equal((await jane.fetch(`${around.url}/`)).status, 401)
  assert.equal((await laptop.fetch(`${around.url}/`)).status, 200)
})

test('A session that an older copy of the file brings back is confirmed at the provider first', async (t) => {
  const around = await prepareGateway(t, { store: '{ file: sessions.db }' })
  const database = join(around.folder, 'sessions.db')
  const first = await start(t, around)
  const [jane, laptop] = [new Browser('jane'), new Browser('jane')]
  await jane.get(`${around.url}/`)
  await laptop.get(`${around.url}/`)
  const [ofJane] = around.provider.sessions()
  await stop(first, 'SIGTERM')
  copyFileSync(database, `${database}.backup`)
  const second = await start(t, around)
  await around.provider.endSession(ofJane?.sid ?? '')
  await stop(second, 'SIGTERM')
  copyFileSync(`${database}.backup`, database)

  const { gateway } = await start(t, around)

  assert.ok(gateway.log().some(({ msg }) => msg === 'store.older_copy'))
  assert.equal((await jane.fetch(`${around.url}/`)).status, 401)
  assert.equal((await laptop.fetch(`${around.url}/`)).status, 200)
})

test('Keys are in the file too, and one that an older copy brings back is confirmed at the provider', async (t) => {
  const rules = '[{ path: /*, keys: true }]\n    keys: {}'
  const around = await prepareGateway(t, { store: '{ file: sessions.db }', session: 'page: true', rules })
  const database = join(around.folder, 'sessions.db')
  const first = await start(t, around)
  const [jane, samir] = [new Browser('jane'), new Browser('samir')]
  for (const browser of [jane, samir]) await browser.get(`${around.url}/`)
  const [key, ended] = [await makeKey(samir, pageOf(around)), await makeKey(jane, pageOf(around))]
  const statusOf = async (of: string) => (await send(`${around.url}/`, basic(of))).status
  await stop(first, 'SIGKILL')
  const second = await start(t, around)
  assert.equal(await statusOf(key), 200)
  await stop(second, 'SIGTERM')
  copyFileSync(database, `${database}.backup`)
  const third = await start(t, around)
  const page = await jane.get(pageOf(around).page)
  await press(jane, page, /^End the key/)
  await until('the token of the key is revoked', () => around.provider.hits('/oauth/revoke') === 1)
  await stop(third, 'SIGTERM')
  copyFileSync(`${database}.backup`, database)

  const asked = around.provider.hits('/oauth/token')
  const { gateway } = await start(t, around)

  assert.ok(gateway.log().some(({ msg }) => msg === 'store.older_copy'))
  assert.equal(await statusOf(key), 200)
  assert.equal(around.provider.hits('/oauth/token'), asked + 1)
  assert.equal(await statusOf(ended), 401)
})

const pageOf = ({ url }: Surroundings) => ({ page: `${url}/.gatehouse/sessions` })

test('A second gateway with the same file does not start, and the first one goes on', async (t) => {
  const around = await prepareGateway(t, { store: '{ file: sessions.db }' })
  await start(t, around)
  const { file, env } = await prepareReplica(around)

  const second = startCommand(t, ['run', '--config', file], { env })

  assert.equal(await second.ended, 1)
  assert.match(second.err(), /session\.store\.file: cannot use .*another process has it open/)
  assert.equal((await new Browser('jane').get(`${around.url}/`)).status, 200)
})
