import assert from 'node:assert/strict'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { SubjectFindings } from '../../packages/doctor/examine.ts'
import { startCommand } from '../support/command.ts'
import { prepareGateway } from '../support/gateway-process.ts'
import { startRedis } from '../support/redis.ts'

test('The doctor finds no fault in a correct installation, and the documentation shows its output', async (t) => {
  const redis = await startRedis(t)
  const around = await prepareGateway(t, { store: `{ redis: { url: "${redis.url}" } }` })
  const gateway = startCommand(t, ['run', '--config', around.file], { env: around.env })
  await gateway.said('gatehouse is ready')

  const told = startCommand(t, ['doctor', '--config', around.file], { env: around.env })
  assert.equal(await told.ended, 0, told.out() + told.err())

  const printed = told
    .out()
    .replaceAll(around.url, 'http://127.0.0.1:8080')
    .replaceAll(around.provider.issuer, 'http://127.0.0.1:8081')
    .replaceAll(around.upstream.url, 'http://127.0.0.1:3000')
    .replaceAll(`port ${new URL(around.upstream.url).port}`, 'port 3000')
    .replaceAll(/(?<=in )\d+ ms/g, '12 ms')
    .replaceAll(/round trip of .* ms/g, 'round trip of 0.2 ms')
    .replaceAll(/clock is .* the local clock/g, 'clock is 0.1 s ahead of the local clock')
    .replaceAll(/(?:redis|valkey) \d+\.\d+\.\d+/g, 'redis 7.0.15')
  const page = new URL('../../docs/cli.md', import.meta.url)
  const shown = /```console\n\$ sudo -u gateway gatehouse doctor --config gateway\.yaml\n([^]*?)```/
  const text = readFileSync(page, 'utf8')
  if (process.env['UPDATE'] === '1')
    writeFileSync(
      page,
      text.replace(shown, (block) => `${block.split('\n', 2).join('\n')}\n${printed}\`\`\``),
    )
  else assert.equal(printed, shown.exec(text)?.[1])
})

test('The doctor reports all faults at once, with exit code 1 and without secrets', async (t) => {
  const around = await prepareGateway(t, {
    store: '{ redis: { url: "redis://127.0.0.1:1", password: { file: redis_password } } }',
  })
  const password = join(around.folder, 'redis_password')
  writeFileSync(password, 'a password of Redis\n')
  chmodSync(password, 0o666)
  const env = { ...around.env, CLIENT_SECRET: 'a wrong secret of this client', NODE_TLS_REJECT_UNAUTHORIZED: '0' }
  around.provider.bend('/.well-known/openid-configuration', (body) => delete body['backchannel_logout_supported'])

  const told = startCommand(t, ['doctor', '--config', around.file, '--format', 'json'], { env })
  assert.equal(await told.ended, 1)

  const { version, faults, examined, register } = JSON.parse(told.out()) as {
    version: number
    faults: number
    examined: SubjectFindings[]
    register: { redirect_uris: string[] }
  }
  const levels = new Map(examined.flatMap(({ findings }) => findings.map(({ id, level }) => [id, level] as const)))
  assert.equal(version, 1)
  assert.equal(faults, [...levels.values()].filter((level) => level === 'fault').length)
  for (const [id, level] of [
    ['provider.discovery', 'ok'],
    ['provider.client', 'fault'],
    ['provider.backchannel_logout', 'warning'],
    ['redis.connection', 'fault'],
    ['upstream.reachable', 'ok'],
    ['gateway.external_url', 'warning'],
    ['gateway.environment', 'fault'],
    ['files.secret', 'fault'],
  ] as const)
    assert.equal(levels.get(id), level, id)
  assert.deepEqual(register.redirect_uris, [`${around.url}/.gatehouse/callback`])
  for (const secret of ['a wrong secret of this client', 'a password of Redis', around.env['SESSION_KEY'] ?? ''])
    assert.ok(!(told.out() + told.err()).includes(secret), 'a secret is printed')
})

test('The doctor reports an invalid file and sends no request', async (t) => {
  const around = await prepareGateway(t)
  writeFileSync(around.file, readFileSync(around.file, 'utf8').replace('version: 1', 'version: 2'))

  const told = startCommand(t, ['doctor', '--config', around.file], { env: around.env })

  assert.equal(await told.ended, 1)
  assert.match(told.err(), /must be the number 1[^]*gateway\.yaml is invalid/)
  assert.equal(told.out(), '')
})
