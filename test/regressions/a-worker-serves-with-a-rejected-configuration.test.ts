import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { describe, test, type TestContext } from 'node:test'
import { Agent, request } from 'undici'
import { childrenOf, startCommand } from '../support/command.ts'
import { prepareGateway, type Surroundings } from '../support/gateway-process.ts'
import { startRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

async function startTwo(t: TestContext, settings = '') {
  const redis = await startRedis(t)
  const around = await prepareGateway(t, {
    settings: `workers: 2\n${settings}`,
    store: `{ redis: { url: "${redis.url}" } }`,
  })
  const gateway = startCommand(t, ['run', '--config', around.file], { env: around.env })
  await gateway.said('gatehouse is ready')
  const change = (from: string, to: string) => {
    const text = readFileSync(around.file, 'utf8')
    assert.ok(text.includes(from))
    writeFileSync(around.file, text.replace(from, to))
    gateway.child.kill('SIGHUP')
  }
  const said = (message: string, times: number) =>
    until(
      `"${message}" for the ${times}th time`,
      () => gateway.log().filter(({ msg }) => msg === message).length >= times,
    )
  return { around, gateway, change, said }
}

/** The responses of both workers. Connections go to the workers in turn. */
async function answers({ url }: Surroundings, path: string): Promise<readonly number[]> {
  const statuses = await Promise.all(
    Array.from({ length: 6 }, async () => {
      const dispatcher = new Agent()
      const { statusCode, body } = await request(url + path, { dispatcher })
      await body.dump()
      await dispatcher.close()
      return statusCode
    }),
  )
  return [...new Set(statuses)]
}

describe('Workers', { concurrency: true }, () => {
  test('A worker that replaces another uses the configuration of the other workers, not the one in the file', async (t) => {
    const { around, gateway, change, said } = await startTwo(t)
    change('/static/*', '/open/*')
    await said('config.reloaded', 1)
    assert.deepEqual(await answers(around, '/open/a'), [200], 'all of them, from then on')
    change('/open/*', '/secret/*')
    await said('config.reloaded', 2)
    change(
      'access: public }]',
      'access: public }, { path: /open/*, access: public }]\n    tests: [{ get: /open/a, expect: 401 }]',
    )
    await said('config.rejected', 1)

    const [first, second] = childrenOf(gateway.pid)
    process.kill(first as number, 'SIGKILL')
    await until(
      'it is replaced',
      () => childrenOf(gateway.pid).length === 2 && !childrenOf(gateway.pid).includes(first as number),
    )
    change('version: 1', 'version: 1\nlisten: nowhere')
    await said('config.rejected', 2)
    process.kill(second as number, 'SIGKILL')
    await until(
      'it is replaced',
      () => childrenOf(gateway.pid).length === 2 && !childrenOf(gateway.pid).includes(second as number),
    )

    const served = () => answers(around, '/secret/a').catch(() => [0])
    await until('it serves', async () => (await served()).every((status) => status === 200))
    assert.deepEqual(await answers(around, '/open/a'), [401])
  })

  test('A worker may drain for as long as the last valid configuration says', async (t) => {
    const { around, gateway, change, said } = await startTwo(t, 'shutdown: { drain_timeout: 1ms }')
    change('drain_timeout: 1ms', 'drain_timeout: 60s')
    await said('config.reloaded', 1)
    change('/static/*', '/slow/*')
    await said('config.reloaded', 2)
    const slow = request(`${around.url}/slow/a`).then(({ body }) => body.text())
    await until('the upstream has the request', () => around.upstream.waiting() === 1)

    gateway.child.kill('SIGTERM')
    // A worker is killed 5 s after its drain time.
    await new Promise((resolve) => setTimeout(resolve, 5_500))
    around.upstream.release()

    assert.equal(await slow, 'at last')
    assert.equal(await gateway.ended, 0)
  })

  test('SIGHUP during the start of a worker ends nothing', async (t) => {
    const around = await prepareGateway(t, { providerStartsDown: true })
    const gateway = startCommand(t, ['run', '--config', around.file], { env: around.env })
    await gateway.said('provider.unavailable')
    assert.ok(!gateway.log().some(({ msg }) => msg === 'gatehouse is ready'))

    gateway.child.kill('SIGHUP')

    await gateway.said('gatehouse is ready')
    await gateway.said('config.reloaded')
  })
})
