import assert from 'node:assert/strict'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { folderWith } from '../support/command-line.ts'
import { startCommand } from '../support/command.ts'
import { prepareGateway } from '../support/gateway-process.ts'
import { until } from '../support/until.ts'

/**
 * A gateway that a supervisor starts. `systemd-notify` is a program that writes down what it gets.
 */
async function startSupervised(t: TestContext, settings: Readonly<Record<string, string>>, exitCode = 0) {
  const around = await prepareGateway(t)
  const folder = folderWith(t, { said: '', 'systemd-notify': '' })
  const said = join(folder, 'said')
  const program = join(folder, 'systemd-notify')
  writeFileSync(program, `#!/bin/sh\necho "$@" >> '${said}'\nexit ${exitCode}\n`)
  chmodSync(program, 0o755)
  const env = {
    ...around.env,
    NOTIFY_SOCKET: '/run/systemd/notify',
    ...settings,
    PATH: `${folder}:${process.env['PATH']}`,
  }
  const gateway = startCommand(t, ['run', '--config', around.file], { env })
  await gateway.said('gatehouse is ready')
  return { gateway, said: () => readFileSync(said, 'utf8').trim().split('\n') }
}

test('systemd is told when the gateway serves, that it is alive, and that it stops', async (t) => {
  const { gateway, said } = await startSupervised(t, { WATCHDOG_USEC: '100000' })

  await until('the watchdog is told twice', () => said().filter((line) => line === 'WATCHDOG=1').length >= 2)
  assert.equal(said()[0], `READY=1 MAINPID=${gateway.pid}`)
  gateway.child.kill('SIGTERM')
  assert.equal(await gateway.ended, 0)

  assert.ok(said().includes('STOPPING=1'))
})

for (const [what, settings] of [
  ['of another process', { WATCHDOG_USEC: '1000', WATCHDOG_PID: '1' }],
  ['without a time', { WATCHDOG_USEC: '0' }],
  ['whose time is not a number', { WATCHDOG_USEC: 'soon' }],
] as const)
  test(`A watchdog ${what} is not told`, async (t) => {
    const { gateway, said } = await startSupervised(t, settings)
    await until('systemd is told of the start', () => said()[0]?.startsWith('READY=1') === true)
    gateway.child.kill('SIGTERM')
    await gateway.ended
    await until('systemd is told of the stop', () => said().includes('STOPPING=1'))

    assert.ok(!said().includes('WATCHDOG=1'))
  })

test('A gateway that cannot reach systemd says so once, and serves', async (t) => {
  const { gateway } = await startSupervised(t, { WATCHDOG_USEC: '100000' }, 1)

  const line = await gateway.said('systemd.not_notified')
  gateway.child.kill('SIGTERM')
  assert.equal(await gateway.ended, 0)

  assert.match(String(line['hint']), /Type=exec/)
  assert.equal(gateway.log().filter(({ msg }) => msg === 'systemd.not_notified').length, 1)
})
