import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Agent, request } from 'undici'
import { Browser } from '../support/browser.ts'
import { childrenOf, startCommand } from '../support/command.ts'
import { prepareGateway } from '../support/gateway-process.ts'
import { readMetrics } from '../support/metrics.ts'
import { gatehouseWith } from '../support/pauses.ts'
import { startRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

test('The metrics of two workers are one sum, and the counts of a worker stay when it dies', async (t) => {
  const redis = await startRedis(t)
  const around = await prepareGateway(t, { store: `{ redis: { url: "${redis.url}" } }`, settings: 'workers: 2' })
  const gateway = startCommand(t, ['run', '--config', around.file], { env: around.env })
  await gateway.said('gatehouse is ready')
  const jane = new Browser('jane')
  await jane.get(`${around.url}/`)
  const served = async () =>
    (await readMetrics(around.adminUrl)).value('gatehouse_requests_total{upstream="orders",method="GET",status="2xx"}')
  // Each request has its own connection, so that both workers get some.
  const ask = async () => {
    const { body } = await request(`${around.url}/`, {
      headers: { cookie: jane.cookieHeader },
      dispatcher: new Agent(),
    })
    await body.dump()
  }
  for (let times = 0; times < 9; times += 1) await ask()

  for (let times = 0; times < 4; times += 1) await until('all ten are counted', async () => (await served()) === 10)
  const page = await readMetrics(around.adminUrl)
  assert.equal(page.value('gatehouse_workers'), 2)
  assert.equal(page.value('gatehouse_sessions_created_total'), 1)

  process.kill(childrenOf(gateway.pid)[0] as number, 'SIGKILL')
  await gateway.said('worker.died')
  await until('there are two again', async () => (await readMetrics(around.adminUrl)).value('gatehouse_workers') === 2)
  assert.equal(await served(), 10)
  await ask()
  await until('one more', async () => (await served()) === 11)
})

test('The metrics can be read while a worker hangs', async (t) => {
  const redis = await startRedis(t)
  const around = await prepareGateway(t, { store: `{ redis: { url: "${redis.url}" } }`, settings: 'workers: 2' })
  const gateway = startCommand(t, ['run', '--config', around.file], {
    env: around.env,
    program: gatehouseWith({ workerReportsMs: 700 }),
  })
  await gateway.said('gatehouse is ready')
  const [hanging] = childrenOf(gateway.pid)
  process.kill(hanging as number, 'SIGSTOP')

  for (let times = 0; times < 3; times += 1)
    assert.equal((await readMetrics(around.adminUrl)).value('gatehouse_workers'), 1)
  process.kill(hanging as number, 'SIGCONT')
})
