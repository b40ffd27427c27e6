import assert from 'node:assert/strict'
import { request } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { loadConfig } from '../../src/config/load.ts'
import { hashSecret } from '../../src/core/scrypt-hash.ts'
import { startApi } from '../support/api-world.ts'
import { folderWith } from '../support/command-line.ts'
import { secrets } from '../support/world.ts'

test('After a reload, wrong secrets of others do not lock out a client that knew the secret before', async (t) => {
  const line = await hashSecret('right', { ln: 14, r: 8, p: 1 })
  const file = join(folderWith(t, { 'accounts.txt': `backup:${line}\n` }), 'accounts.txt')
  const world = await startApi(t, {
    rules: '[{ path: /export/*, service_accounts: true }]',
    upstream: `service_accounts: { file: "${file}" }`,
  })
  const statusFrom = (localAddress: string, secret: string) =>
    new Promise<number | undefined>((resolve, reject) => {
      const options = { localAddress, auth: `backup:${secret}`, agent: false }
      request(`${world.url}/export/x`, options, (response) => resolve(response.resume().statusCode))
        .on('error', reject)
        .end()
    })
  assert.equal(await statusFrom('127.0.0.1', 'right'), 200)
  const loaded = loadConfig(world.gateway.file, secrets)
  assert.ok(loaded.ok)
  await world.gateway.gateway.reload(loaded.config)

  const attempts = [2, 3, 4].flatMap((host) =>
    Array.from({ length: 10 }, (_, each) => statusFrom(`127.0.0.${host}`, `wrong ${host} ${each}`)),
  )
  assert.deepEqual(new Set(await Promise.all(attempts)), new Set([401]))

  assert.equal(await statusFrom('127.0.0.5', 'right'), 429)
  assert.equal(await statusFrom('127.0.0.1', 'right'), 200)
})
