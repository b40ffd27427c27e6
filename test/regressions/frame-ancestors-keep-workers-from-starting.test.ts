import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { startCommand } from '../support/command.ts'
import { prepareGateway } from '../support/gateway-process.ts'
import { startRedis } from '../support/redis.ts'

test('Several workers start with frame_ancestors, and their responses have the policy', async (t) => {
  const redis = await startRedis(t)
  const around = await prepareGateway(t, {
    store: `{ redis: { url: "${redis.url}" } }`,
    settings: 'workers: 2',
    rules: '[{ path: /*, access: public }]',
  })
  const text = readFileSync(around.file, 'utf8')
  const presets = '    response_headers: { frame_ancestors: [self] }\n    rules:'
  writeFileSync(around.file, text.replace(/^ {4}rules:/m, presets))
  const gateway = startCommand(t, ['run', '--config', around.file], { env: around.env })

  await gateway.said('gatehouse is ready')

  const { headers } = await fetch(around.url)
  assert.equal(headers.get('content-security-policy'), "frame-ancestors 'self'")
})
