// Slow: 3 s, workers start
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Browser } from '../support/browser.ts'
import { startCommand } from '../support/command.ts'
import { decide, startDecisionPoint } from '../support/decision-point.ts'
import { prepareGateway } from '../support/gateway-process.ts'
import { startRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

const requests = 12

test('With workers, requests whose session ends during the decision get 401 from each worker', async (t) => {
  const [redis, point] = await Promise.all([startRedis(t), startDecisionPoint(t)])
  const around = await prepareGateway(t, {
    store: `{ redis: { url: "${redis.url}" } }`,
    settings: 'workers: 2',
    rules: `[{ path: /static/*, access: public }]
    authorize_with: { url: "${point.url}", timeout: 10s }`,
  })
  const gateway = startCommand(t, ['run', '--config', around.file], { env: around.env })
  await gateway.said('gatehouse is ready')
  const jane = new Browser('jane')
  await jane.get(`${around.url}/`)
  const permits: (() => void)[] = []
  const permit = decide({ decision: true })
  point.answer = (...asked) => void permits.push(() => permit(...asked))
  // Enough connections for both workers.
  const responses = Array.from({ length: requests }, (_, at) =>
    fetch(`${around.url}/page?${at}`, { headers: { cookie: jane.cookieHeader, connection: 'close' } }),
  )
  await until('each request waits for its decision', () => permits.length === requests)
  const [session] = around.provider.sessions()
  assert.deepEqual(await around.provider.endSession(session?.sid ?? ''), { kind: 'delivered', status: 200 })

  for (const each of permits) each()

  assert.deepEqual(
    (await Promise.all(responses)).map(({ status }) => status),
    Array<number>(requests).fill(401),
  )
  point.answer = permit
  assert.equal((await new Browser('noa').get(`${around.url}/`)).body, 'for noa')
})
