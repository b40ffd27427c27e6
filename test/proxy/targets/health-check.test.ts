import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { test, type TestContext } from 'node:test'
import type { HealthCheckConfig, TargetConfig } from '../../../src/config/model/upstream.ts'
import { TargetHealth } from '../../../src/proxy/targets/target-health.ts'
import { freePort } from '../../support/free-port.ts'
import { until } from '../../support/until.ts'
import { httpUpstream, rawUpstream, startGateway } from '../support.ts'

const check: HealthCheckConfig = {
  ...{ path: '/health', everyMs: 10, timeoutMs: 5_000, expect: [], healthyAfter: 2, unhealthyAfter: 3 },
}

const target = (port: number): TargetConfig => ({
  ...{ url: new URL(`http://127.0.0.1:${port}`), socketPath: undefined, weight: 1, backup: false },
})

/** A target whose checks get the status that the test sets. */
async function checkedTarget(t: TestContext, name: string) {
  const state = { status: 200, checks: [] as IncomingMessage[], port: 0 }
  const { port } = await httpUpstream(t, (req: IncomingMessage, res: ServerResponse) => {
    if (req.url !== '/health') return res.end(name)
    state.checks.push(req)
    return res.writeHead(state.status).end()
  })
  return Object.assign(state, { port })
}

async function gatewayTo(t: TestContext, ports: readonly number[], settings: Partial<HealthCheckConfig> = {}) {
  const targets = ports.map(target)
  const gateway = await startGateway(t, 1, { upstream: { targets, healthCheck: { ...check, ...settings } } })
  gateway.upstreams.start()
  const bodies = async (times: number) => {
    const found: string[] = []
    for (let at = 0; at < times; at++) found.push(await (await fetch(gateway.origin)).text())
    return found
  }
  const states = () => gateway.upstreams.targets()[0]?.[1].map(({ state }) => state)
  const becomes = (...expected: readonly string[]) =>
    until(`the targets are ${expected.join()}`, () => expected.join() === states()?.join())
  return { ...gateway, bodies, becomes }
}

test('A target that is unhealthy gets no requests until it is healthy again', async (t) => {
  const [one, two] = [await checkedTarget(t, 'one'), await checkedTarget(t, 'two')]
  const { bodies, becomes, logged } = await gatewayTo(t, [one.port, two.port])
  assert.deepEqual((await bodies(2)).toSorted(), ['one', 'two'])

  one.status = 503
  await becomes('unhealthy', 'up')
  assert.deepEqual(await bodies(4), ['two', 'two', 'two', 'two'])
  one.status = 204
  await becomes('up', 'up')
  assert.deepEqual((await bodies(2)).toSorted(), ['one', 'two'])
  assert.deepEqual(
    logged.map(({ message, fields }) => [message, fields['target'], fields['reason']]),
    [
      ['upstream.target_unhealthy', `http://127.0.0.1:${one.port}`, 'status 503'],
      ['upstream.target_healthy', `http://127.0.0.1:${one.port}`, undefined],
    ],
  )
})

test('A check has the public host and no identity', async (t) => {
  const one = await checkedTarget(t, 'one')
  await gatewayTo(t, [one.port])
  await until('a check came', () => one.checks.length > 0)

  const headers = one.checks[0]?.headers ?? {}
  assert.equal(headers.host, 'orders.example.com')
  assert.deepEqual(Object.keys(headers).toSorted(), ['accept', 'connection', 'host', 'user-agent'])
})

test('A response that never ends is judged by its status, and its connection is closed', async (t) => {
  let closed = 0
  const endless = await rawUpstream(t, (socket) => {
    socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
    const writing = setInterval(() => socket.write('5\r\nhello\r\n'), 1)
    socket.on('close', () => {
      clearInterval(writing)
      closed += 1
    })
  })
  const { logged } = await gatewayTo(t, [endless, await freePort()])
  await until('some checks were closed', () => closed >= 3)

  assert.ok(!logged.some(({ fields }) => fields['target'] === `http://127.0.0.1:${endless}`))
})

test('When all targets are unhealthy, they get requests nevertheless', async (t) => {
  const [one, two] = [await checkedTarget(t, 'one'), await checkedTarget(t, 'two')]
  one.status = two.status = 500
  const { bodies, becomes, logged } = await gatewayTo(t, [one.port, two.port])
  await becomes('unhealthy', 'unhealthy')

  assert.deepEqual((await bodies(2)).toSorted(), ['one', 'two'])
  const said = () => logged.filter(({ message }) => message === 'upstream.all_unhealthy')
  await until('the log says it', () => said().length > 0)
  assert.deepEqual([said().length, said()[0]?.fields['path']], [1, '/health'])
})

test('A target that has never responded well gets no requests after the first check', async (t) => {
  const closed = await freePort()
  const two = await checkedTarget(t, 'two')
  const { bodies, becomes, logged } = await gatewayTo(t, [closed, two.port], { everyMs: 3_600_000 })
  await becomes('unhealthy', 'up')

  assert.deepEqual(await bodies(2), ['two', 'two'])
  assert.ok(!logged.some(({ message }) => message === 'upstream.retried'))
})

test('Only the expected statuses are good', async (t) => {
  const one = await checkedTarget(t, 'one')
  one.status = 302
  const { becomes } = await gatewayTo(t, [one.port, (await checkedTarget(t, 'two')).port], { expect: [200, 204] })

  await becomes('unhealthy', 'up')
})

test('A check without a response fails after its timeout', async (t) => {
  const silent = await rawUpstream(t, () => {})
  const { becomes, logged } = await gatewayTo(t, [silent, (await checkedTarget(t, 'two')).port], { timeoutMs: 20 })
  await becomes('unhealthy', 'up')

  assert.equal(logged[0]?.fields['reason'], 'no response within 20 ms')
})

test('Single bad checks between good ones change nothing', () => {
  const health = new TargetHealth(() => 0)
  assert.equal(health.check(undefined, check), undefined)
  for (let times = 0; times < 10; times++) {
    assert.equal(health.check('status 500', check), undefined)
    assert.equal(health.check('status 500', check), undefined)
    assert.equal(health.check(undefined, check), undefined)
  }
  for (const expected of [undefined, undefined, 'unhealthy', undefined])
    assert.equal(health.check('x', check), expected)
  for (const [fault, expected] of [
    [undefined, undefined],
    ['x', undefined],
    [undefined, undefined],
    [undefined, 'healthy'],
  ] as const)
    assert.equal(health.check(fault, check), expected)
})

test('Health checks that are removed from the configuration leave no target unhealthy', () => {
  const health = new TargetHealth(() => 0)
  health.check('status 500', check)
  assert.equal(health.isAvailable, false)

  health.forgetChecks()
  assert.equal(health.isAvailable, true)
})
