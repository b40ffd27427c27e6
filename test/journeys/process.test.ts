// Slow: 15 s, processes with workers start, drain and die
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { Agent, request } from 'undici'
import { Browser, navigation } from '../support/browser.ts'
import { childrenOf, isAlive, root, startCommand, type Command } from '../support/command.ts'
import { freePort } from '../support/free-port.ts'
import { prepareGateway, type Surroundings } from '../support/gateway-process.ts'
import { gatehouseWith, type OtherPauses } from '../support/pauses.ts'
import { startRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

const run = (t: TestContext, { file, env }: Surroundings, others: OtherPauses = {}): Command =>
  startCommand(t, ['run', '--config', file], { env, program: gatehouseWith(others) })

test('The gateway logs once, as JSON, that it is ready, and exits with 0 after SIGTERM', async (t) => {
  const around = await prepareGateway(t)
  const gateway = run(t, around)

  const ready = await gateway.said('gatehouse is ready')
  const page = await new Browser('jane').get(`${around.url}/`)
  const live = await request(`${around.adminUrl}/live`)
  gateway.child.kill('SIGTERM')

  assert.deepEqual([ready['listen'], ready['url'], ready['store']], [around.url, around.url, 'memory'])
  assert.equal(ready['pid'], gateway.pid)
  assert.deepEqual([page.status, page.body], [200, 'for jane'])
  assert.equal(live.statusCode, 200)
  assert.equal(await gateway.ended, 0)
  assert.equal(gateway.log().filter(({ msg }) => msg === 'gatehouse is ready').length, 1)
  for (const line of gateway.log()) assert.match(String(line['time']), /^\d{4}-\d\d-\d\dT/)
  assert.equal(gateway.err().replace(/.*warning.*\n(?: .*\n)*/g, ''), '')
})

test('After SIGTERM, exchanges in progress finish and no new ones begin', async (t) => {
  const around = await prepareGateway(t)
  const gateway = run(t, around)
  await gateway.said('gatehouse is ready')
  const agent = new Agent({ keepAliveTimeout: 60_000 })
  t.after(() => agent.destroy())
  const response = request(`${around.url}/static/slow`, { dispatcher: agent }).then(({ body }) => body.text())
  await until('the upstream has the request', () => around.upstream.waiting() === 1)

  gateway.child.kill('SIGTERM')
  await until('no connection is taken', () => refuses(around.url))
  const ready = await request(`${around.adminUrl}/ready`)
  around.upstream.release()
  const startedAt = performance.now()

  assert.equal(ready.statusCode, 503)
  assert.equal(((await ready.body.json()) as { draining: boolean }).draining, true)
  assert.equal(await response, 'at last')
  assert.equal(await gateway.ended, 0)
  // The client keeps its connection for a minute, and the drain time is 15 s. The gateway waits for
  // neither.
  assert.ok(performance.now() - startedAt < 14_000)
})

test('Exchanges that do not finish are closed when the drain time is over', async (t) => {
  const around = await prepareGateway(t, { settings: 'shutdown: { drain_timeout: 200ms }' })
  const gateway = run(t, around)
  await gateway.said('gatehouse is ready')
  const response = request(`${around.url}/static/slow`).then(
    () => 'answered',
    () => 'broken off',
  )
  await until('the upstream has the request', () => around.upstream.waiting() === 1)

  gateway.child.kill('SIGTERM')

  assert.equal(await response, 'broken off')
  assert.equal(await gateway.ended, 0)
})

test('The same signal twice at once counts as one signal', async (t) => {
  const around = await prepareGateway(t)
  const gateway = run(t, around)
  await gateway.said('gatehouse is ready')
  const response = request(`${around.url}/static/slow`).then(({ body }) => body.text())
  await until('the upstream has the request', () => around.upstream.waiting() === 1)

  gateway.child.kill('SIGTERM')
  await until('no connection is taken', () => refuses(around.url))
  gateway.child.kill('SIGTERM')
  gateway.child.kill('SIGINT')
  around.upstream.release()

  assert.equal(await response, 'at last')
  assert.equal(await gateway.ended, 0)
})

test('Further stop signals end the process without waiting for exchanges in progress', async (t) => {
  const around = await prepareGateway(t)
  const gateway = run(t, around)
  await gateway.said('gatehouse is ready')
  const response = request(`${around.url}/static/slow`).catch(() => 'broken off')
  await until('the upstream has the request', () => around.upstream.waiting() === 1)
  const startedAt = performance.now()

  await until('it has ended', () => !gateway.child.kill('SIGTERM') || gateway.child.exitCode !== null)

  assert.equal(await gateway.ended, 1)
  assert.equal(await response, 'broken off')
  assert.ok(performance.now() - startedAt > 900)
})

test('gatehouse health tells a gateway that responds from one that does not', async (t) => {
  const around = await prepareGateway(t)
  const health = () => startCommand(t, ['health', '--config', around.file], { env: around.env })
  const before = health()
  assert.equal(await before.ended, 1)
  assert.match(before.err(), /does not respond/)

  const gateway = run(t, around)
  await gateway.said('gatehouse is ready')

  assert.equal(await health().ended, 0)
})

for (const [what, settings] of [
  ['the port', ''],
  ['the port of two workers', 'workers: 2'],
] as const)
  test(`When ${what} is already in use, the gateway says so and exits with 1`, async (t) => {
    const redis = settings === '' ? undefined : await startRedis(t)
    const store = redis === undefined ? 'memory' : `{ redis: { url: "${redis.url}" } }`
    const around = await prepareGateway(t, { store, settings })
    const first = run(t, around)
    await first.said('gatehouse is ready')
    // Its own is free.
    writeFileSync(
      around.file,
      readFileSync(around.file, 'utf8').replace(/^admin: .*$/m, 'admin: { listen: 127.0.0.1:0 }'),
    )

    const second = run(t, around)

    assert.equal(await second.ended, 1)
    const { port } = new URL(around.url)
    assert.equal(second.err().split(`port ${port} of 127.0.0.1 is in use`).length, 2, second.err())
    assert.doesNotMatch(second.err(), / at .*\.js/)
    assert.doesNotMatch(second.out(), /gatehouse is ready/)
  })

test('An error for a missing or invalid file names the file, line and column, and the exit code is 1', async (t) => {
  const around = await prepareGateway(t)
  const wrong = join(around.folder, 'wrong.yaml')
  const lines = readFileSync(around.file, 'utf8').split('\n')
  writeFileSync(wrong, lines.map((line) => line.replace('  client_id:', '  clientid:')).join('\n'))
  const line = lines.findIndex((text) => text.startsWith('  client_id:')) + 1

  const absent = startCommand(t, ['run', '--config', join(around.folder, 'absent.yaml')], around)
  const mistaken = startCommand(t, ['run', '--config', wrong], around)
  const noSecret = startCommand(t, ['run', '--config', around.file], {
    env: { ...around.env, CLIENT_SECRET: undefined },
  })

  assert.equal(await absent.ended, 1)
  assert.match(absent.err(), /absent\.yaml/)
  assert.equal(await mistaken.ended, 1)
  assert.ok(mistaken.err().includes(`${wrong}:${line}:3  error`), mistaken.err())
  assert.match(mistaken.err(), /client_id/)
  assert.equal(await noSecret.ended, 1)
  assert.match(noSecret.err(), /gateway\.yaml:\d+:\d+ {2}error.*CLIENT_SECRET/)
  for (const { out } of [absent, mistaken, noSecret]) assert.equal(out(), '')
})

test('An unknown command gets a pointer to the usage and exit code 2', async (t) => {
  for (const args of [['serve'], ['run', 'now'], ['run', '--port', '1']]) {
    const command = startCommand(t, args)
    assert.equal(await command.ended, 2)
    assert.match(command.err(), /^gatehouse: .+\nFor help, run: gatehouse help( run)?\n$/)
  }
})

test('Without Redis, the gateway starts, is not ready, and responds with 503 and Retry-After instead of a redirect', async (t) => {
  const around = await prepareGateway(t, { store: `{ redis: { url: "redis://127.0.0.1:${await freePort()}" } }` })
  const gateway = run(t, around, { waitForDependenciesMs: 300 })
  await gateway.said('gatehouse is ready')
  const cookie = `gatehouse=${'A'.repeat(64)}`

  const ready = await request(`${around.adminUrl}/ready`)
  const page = await request(`${around.url}/`, { headers: { ...navigation, cookie } })
  const api = await request(`${around.url}/`, { headers: { cookie } })
  const signIn = await request(`${around.url}/.gatehouse/sign-in`, { headers: navigation })
  const publicPage = await request(`${around.url}/static/a`)

  assert.deepEqual([ready.statusCode, page.statusCode, api.statusCode, signIn.statusCode], [503, 503, 503, 503])
  for (const { headers } of [page, api, signIn]) {
    assert.match(String(headers['retry-after']), /^\d+$/)
    assert.equal(headers.location, undefined)
  }
  assert.equal(publicPage.statusCode, 200)
  assert.equal(around.provider.hits('/oauth/authorize'), 0)
})

test('Without the provider, the gateway starts and is ready, and only sign-ins have to wait', async (t) => {
  const around = await prepareGateway(t, { providerStartsDown: true })
  const gateway = run(t, around, { waitForDependenciesMs: 300 })
  await gateway.said('gatehouse is ready')

  const ready = await request(`${around.adminUrl}/ready`)
  const signIn = await request(`${around.url}/.gatehouse/sign-in`, { headers: navigation })
  await around.provider.up()

  assert.equal(ready.statusCode, 200)
  assert.equal(signIn.statusCode, 503)
  await until('the provider was found', async () => {
    const { statusCode } = await request(`${around.url}/.gatehouse/sign-in`, { headers: navigation })
    return statusCode === 303
  })
})

test('The gateway continues when the reader of its log is gone', async (t) => {
  const around = await prepareGateway(t)
  const gateway = run(t, around)
  await gateway.said('gatehouse is ready')

  gateway.child.stdout?.destroy()
  gateway.child.stderr?.destroy()
  for (let times = 0; times < 3; times += 1) await request(`${around.url}/%zz`)
  const page = await new Browser('jane').get(`${around.url}/`)
  gateway.child.kill('SIGTERM')

  assert.equal(page.status, 200)
  assert.equal(await gateway.ended, 0)
})

test('A stalled reader of the log delays neither requests nor the stop', async (t) => {
  const around = await prepareGateway(t)
  const gateway = run(t, around)
  await gateway.said('gatehouse is ready')
  gateway.child.stdout?.pause()
  const exited = once(gateway.child, 'exit')

  // These lines exceed the buffer of the pipe.
  const refused = () => request(`${around.url}/%zz`).then(({ statusCode, body }) => body.dump().then(() => statusCode))
  for (let round = 0; round < 60; round += 1) await Promise.all(Array.from({ length: 50 }, refused))
  const page = await new Browser('jane').get(`${around.url}/`)
  gateway.child.kill('SIGTERM')
  await exited
  gateway.child.stdout?.resume()

  assert.equal(page.status, 200)
})

test('Two workers serve one port and share their sessions, and a worker that dies is replaced', async (t) => {
  const redis = await startRedis(t)
  const around = await prepareGateway(t, { store: `{ redis: { url: "${redis.url}" } }`, settings: 'workers: 2' })
  const gateway = run(t, around)
  const ready = await gateway.said('gatehouse is ready')
  const jane = new Browser('jane')
  assert.equal((await jane.get(`${around.url}/`)).body, 'for jane')
  const pids = childrenOf(gateway.pid)
  assert.deepEqual([ready['workers'], pids.length], [2, 2])

  // Connections go to the two workers in turn, so while one is stopped, at most one of three waits.
  for (const pid of pids) {
    process.kill(pid, 'SIGSTOP')
    let served = 0
    const visits = [1, 2, 3].map(async () => {
      const { body } = await request(`${around.url}/`, {
        headers: { cookie: jane.cookieHeader },
        dispatcher: new Agent(),
      })
      assert.equal(await body.text(), 'for jane')
      served += 1
    })
    await until('the other one serves', () => served >= 2)
    process.kill(pid, 'SIGCONT')
    await Promise.all(visits)
  }

  process.kill(pids[0] as number, 'SIGKILL')
  const died = await gateway.said('worker.died')
  assert.deepEqual([died['pid'], died['how']], [pids[0], 'SIGKILL'])
  await until('there are two again', () => childrenOf(gateway.pid).length === 2)
  assert.equal((await jane.get(`${around.url}/`)).body, 'for jane')

  const last = childrenOf(gateway.pid)
  gateway.child.kill('SIGTERM')
  assert.equal(await gateway.ended, 0)
  assert.deepEqual(last.filter(isAlive), [])
  assert.equal(gateway.log().filter(({ msg }) => msg === 'gatehouse is ready').length, 1)
})

for (const [whom, workers] of [
  ['npm', 1],
  ['the whole process group', 1],
  ['the whole process group, with workers', 2],
] as const)
  test(`In a clone, SIGTERM for ${whom} lets requests finish and leaves no process behind`, async (t) => {
    const redis = workers === 1 ? undefined : await startRedis(t)
    const store = redis === undefined ? 'memory' : `{ redis: { url: "${redis.url}" } }`
    const around = await prepareGateway(t, { store, settings: `workers: ${workers}` })
    const npm = startCommand(t, ['run', '-s', 'gatehouse', '--', 'run', '--config', around.file], {
      program: ['npm'],
      cwd: root,
      env: around.env,
      ownGroup: true,
    })
    const gateway = Number((await npm.said('gatehouse is ready'))['pid'])
    const family = [gateway, ...childrenOf(gateway)]
    assert.equal(family.length, workers === 1 ? 1 : 3)
    const response = request(`${around.url}/static/slow`).then(({ body }) => body.text())
    await until('the upstream has the request', () => around.upstream.waiting() === 1)

    process.kill(whom === 'npm' ? npm.pid : -npm.pid, 'SIGTERM')
    await until('no connection is taken', () => refuses(around.url))
    around.upstream.release()

    assert.equal(await response, 'at last')
    assert.equal(await npm.ended, 0)
    await until('nobody is left', () => !family.some(isAlive))
  })

function refuses(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname)
    const settle = (refused: boolean) => {
      socket.destroy()
      resolve(refused)
    }
    socket.once('connect', () => settle(false)).once('error', () => settle(true))
  })
}
