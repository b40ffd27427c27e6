// Slow: 6 s, processes with workers reload their file
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { Redis } from 'ioredis'
import { request } from 'undici'
import { hashSecret } from '../../src/core/scrypt-hash.ts'
import { Browser } from '../support/browser.ts'
import { startCommand, type Command } from '../support/command.ts'
import { prepareGateway, type Surroundings } from '../support/gateway-process.ts'
import { readMetrics } from '../support/metrics.ts'
import { gatehouseWith } from '../support/pauses.ts'
import { startRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

/** Files are checked often, so that no test waits for it. */
const program = gatehouseWith({ watchFilesMs: 100 })

const run = (t: TestContext, { file, env }: Surroundings): Command =>
  startCommand(t, ['run', '--config', file], { env, program })

function change({ file }: Surroundings, from: string, to: string): void {
  const text = readFileSync(file, 'utf8')
  assert.ok(text.includes(from))
  // At once, because the gateway also looks by itself, and would reject half a file.
  writeFileSync(`${file}.next`, text.replace(from, to))
  renameSync(`${file}.next`, file)
}

const statusOf = async (url: string): Promise<number> => (await request(url)).statusCode

test('The gateway serves with a changed file, people stay signed in, and requests in progress continue', async (t) => {
  const around = await prepareGateway(t)
  const gateway = run(t, around)
  await gateway.said('gatehouse is ready')
  const jane = new Browser('jane')
  await jane.get(`${around.url}/`)
  const slow = jane.fetch(`${around.url}/slow`)
  await until('the upstream has the request', () => around.upstream.waiting() === 1)

  change(around, 'X-Remote-User: sub', 'X-Remote-User: "user:{sub}"')
  await gateway.said('config.reloaded')

  assert.equal((await jane.get(`${around.url}/`)).body, 'for user:jane')
  around.upstream.release()
  assert.equal((await slow).body, 'at last')
  assert.equal(around.provider.sessions().length, 1, 'she has signed in once')
})

test('A file with an error changes nothing and is reported with the places, and the corrected file is applied', async (t) => {
  const around = await prepareGateway(t)
  const gateway = run(t, around)
  await gateway.said('gatehouse is ready')

  change(around, 'rules: [{ path: /static/*, access: public }]', 'rules: [{ path: /open/*, acces: public }]')
  const rejected = await gateway.said('config.rejected')

  assert.match(
    String(rejected['faults']),
    /gateway\.yaml:\d+:\d+ {2}error {2}upstreams\.orders\.rules\[0\].*did you mean/s,
  )
  assert.deepEqual(await Promise.all(['/static/a', '/open/a'].map((path) => statusOf(around.url + path))), [200, 401])

  change(around, 'acces: public', 'access: public')
  await gateway.said('config.reloaded')

  assert.deepEqual(await Promise.all(['/static/a', '/open/a'].map((path) => statusOf(around.url + path))), [401, 200])
})

test('The metrics show a rejected configuration and one that needs a restart, for one process and for workers', async (t) => {
  const redis = await startRedis(t)
  const settings = ['', 'workers: 2']
  await Promise.all(
    settings.map(async (setting) => {
      const around = await prepareGateway(t, { settings: setting, store: `{ redis: { url: "${redis.url}" } }` })
      const gateway = run(t, around)
      await gateway.said('gatehouse is ready')
      const counted = async () => {
        const page = await readMetrics(around.adminUrl)
        return [
          page.value('gatehouse_log_events_total{level="error",event="config.rejected"}'),
          page.value('gatehouse_log_events_total{level="warn",event="config.needs_restart"}'),
        ]
      }
      assert.deepEqual(await counted(), [0, 0])

      change(around, 'version: 1', 'version: 1\nlisten: nowhere')
      gateway.child.kill('SIGHUP')
      await gateway.said('config.rejected')
      // The gateway also looks by itself, and may reject the same file once more.
      const [rejected = 0, restarts] = await counted()
      assert.ok(rejected >= 1 && rejected <= 2 && restarts === 0, `${rejected} and ${restarts}`)

      change(around, 'listen: nowhere', 'tracing: { otlp: "http://127.0.0.1:9/v1/traces" }')
      gateway.child.kill('SIGHUP')
      await gateway.said('config.needs_restart')
      assert.equal((await counted())[1], 1)
    }),
  )
})

test('A missing or half-written file changes nothing, and neither does one of service accounts', async (t) => {
  const around = await prepareGateway(t, {
    rules:
      '[{ path: /static/*, access: public }, { path: /*, service_accounts: true }]\n    service_accounts: { file: accounts }',
  })
  const line = `backup:${await hashSecret('a secret', { ln: 14, r: 8, p: 1 })}\n`
  const accounts = join(around.folder, 'accounts')
  writeFileSync(accounts, line)
  const gateway = run(t, around)
  await gateway.said('gatehouse is ready')
  const text = readFileSync(around.file, 'utf8')
  const rejected = (times: number) =>
    until('it is rejected', () => gateway.log().filter(({ msg }) => msg === 'config.rejected').length === times)

  writeFileSync(accounts, line.slice(0, 40))
  gateway.child.kill('SIGHUP')
  await rejected(1)
  const authorization = `Basic ${btoa('backup:a secret')}`
  assert.equal((await request(`${around.url}/x`, { headers: { authorization } })).statusCode, 200)
  rmSync(around.file)
  gateway.child.kill('SIGHUP')
  await rejected(2)
  writeFileSync(around.file, text.slice(0, text.indexOf('access: public') + 5))
  gateway.child.kill('SIGHUP')
  await rejected(3)
  assert.equal(await statusOf(`${around.url}/static/a`), 200)

  writeFileSync(accounts, line)
  writeFileSync(around.file, text.replace('/static/*', '/open/*'))
  await gateway.said('config.reloaded')
  assert.equal(await statusOf(`${around.url}/open/a`), 200)
})

test('A file whose embedded tests fail is rejected', async (t) => {
  const around = await prepareGateway(t)
  const gateway = run(t, around)
  await gateway.said('gatehouse is ready')

  change(around, 'access: public }]', 'access: public }]\n    tests: [{ get: /secret, expect: pass }]')

  assert.match(String((await gateway.said('config.rejected'))['faults']), /tests\[0\]: GET \/secret: expected pass/)
})

test('SIGHUP reloads the file, and the log names the settings that need a restart', async (t) => {
  const around = await prepareGateway(t)
  const gateway = run(t, around)
  await gateway.said('gatehouse is ready')

  change(
    around,
    'version: 1',
    'version: 1\nlimits: { header_size: 20kb }\nlog: { level: debug }\ntracing: { otlp: "http://127.0.0.1:4318" }',
  )
  gateway.child.kill('SIGHUP')

  assert.equal((await gateway.said('config.reloaded'))['why'], 'SIGHUP')
  assert.deepEqual((await gateway.said('config.needs_restart'))['settings'], ['log', 'tracing', 'limits.header_size'])
  gateway.child.kill('SIGTERM')
  assert.equal(await gateway.ended, 0)
})

test('A password of Redis that is replaced in its file is used without a restart', async (t) => {
  const redis = await startRedis(t, { password: 'first' })
  const around = await prepareGateway(t, {
    store: `{ redis: { url: "redis://127.0.0.1:${redis.port}", password: { file: redis_password } } }`,
  })
  const file = join(around.folder, 'redis_password')
  writeFileSync(file, 'first')
  const gateway = run(t, around)
  await gateway.said('gatehouse is ready')
  const admin = new Redis(redis.port, '127.0.0.1', { password: 'first' })
  t.after(() => admin.disconnect())

  await admin.config('SET', 'requirepass', 'second')
  writeFileSync(file, 'second')
  await gateway.said('config.reloaded')
  await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')

  const jane = new Browser('jane')
  await until('Jane is signed in', async () => (await jane.get(`${around.url}/secret`)).status === 200)
  assert.ok(gateway.log().every(({ msg }) => msg !== 'config.needs_restart'))
})

test('A secret that is replaced behind a symbolic link, as Kubernetes does it, is applied', async (t) => {
  const around = await prepareGateway(t)
  for (const [version, secret] of [
    ['v1', around.env['CLIENT_SECRET']],
    ['v2', 'not what the provider knows'],
  ] as const) {
    mkdirSync(join(around.folder, version))
    writeFileSync(join(around.folder, version, 'secret'), String(secret))
  }
  symlinkSync('v1', join(around.folder, 'current'))
  change(around, '{ env: CLIENT_SECRET }', '{ file: current/secret }')
  const gateway = run(t, around)
  await gateway.said('gatehouse is ready')
  assert.equal((await new Browser('jane').get(`${around.url}/`)).status, 200)

  symlinkSync('v2', join(around.folder, 'next'))
  renameSync(join(around.folder, 'next'), join(around.folder, 'current'))
  await gateway.said('config.reloaded')

  assert.notEqual((await new Browser('joe').get(`${around.url}/`)).status, 200)
})

test('All workers reload', async (t) => {
  const redis = await startRedis(t)
  const around = await prepareGateway(t, {
    settings: 'workers: 2',
    store: `{ redis: { url: "redis://127.0.0.1:${redis.port}" } }`,
  })
  const gateway = run(t, around)
  await gateway.said('gatehouse is ready')

  change(around, '/static/*', '/open/*')
  await gateway.said('config.reloaded')

  // Each connection may reach another worker.
  await until('no worker serves by the old one', async () => {
    const responses = await Promise.all(Array.from({ length: 8 }, () => statusOf(`${around.url}/open/a`)))
    return responses.every((status) => status === 200)
  })
})

test('The file of a fixed response is read again when it changes', async (t) => {
  const around = await prepareGateway(t)
  const note = join(around.folder, 'note.txt')
  writeFileSync(note, 'first')
  change(around, 'access: public }]', 'access: public }, { path: /note, access: public, respond: { file: note.txt } }]')
  const gateway = run(t, around)
  await gateway.said('gatehouse is ready')
  const read = async () => (await request(`${around.url}/note`)).body.text()
  assert.equal(await read(), 'first')

  writeFileSync(note, 'the second')
  await gateway.said('config.reloaded')

  assert.equal(await read(), 'the second')
})
