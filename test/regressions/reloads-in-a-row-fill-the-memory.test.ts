import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { startCommand } from '../support/command.ts'
import { prepareGateway } from '../support/gateway-process.ts'
import { gatehouseWith } from '../support/pauses.ts'
import { until } from '../support/until.ts'

test('Reload requests that arrive during a reload are merged into one, which reads the files as they are then', async (t) => {
  // A reload waits half a second for an unreachable provider.
  const program = gatehouseWith({ waitForDependenciesMs: 500 })
  const { url, file, env } = await prepareGateway(t, { providerStartsDown: true })
  const gateway = startCommand(t, ['run', '--config', file], { env, program })
  await gateway.said('gatehouse is ready')
  const reloads = () => gateway.log().filter(({ msg }) => msg === 'config.reloaded').length

  const before = readFileSync(file, 'utf8')
  for (let times = 1; times <= 30; times += 1) {
    writeFileSync(file, before.replace('path: /static/*', `path: /public-${times}/*`))
    process.kill(gateway.pid, 'SIGHUP')
    await new Promise((resolve) => setImmediate(resolve))
  }

  const isServed = async () => (await fetch(`${url}/public-30/x`)).status === 200
  await until('the last configuration is served', isServed)
  assert.ok(reloads() <= 10, `${reloads()} reloads`)
})
