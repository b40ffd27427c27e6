import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { hashSecret } from '../../src/core/scrypt-hash.ts'
import { folderWith } from '../support/command-line.ts'
import { startAskedWorld } from './asking.ts'

test('A service account is checked for another proxy, and its secret is not for the application', async (t) => {
  const line = `backup:${await hashSecret('a secret', { ln: 14, r: 8, p: 1 })}\n`
  const file = join(folderWith(t, { 'accounts.txt': line }), 'accounts.txt')
  const world = await startAskedWorld(t, {
    wiki: `service_accounts: { file: "${file}" }`,
    wikiRules: '- { path: /wiki/export/*, service_accounts: true }',
  })
  const ask = (secret: string) =>
    world.ask(
      world.described({
        ...{ 'X-Forwarded-Uri': '/wiki/export/x', Accept: undefined },
        Authorization: `Basic ${Buffer.from(`backup:${secret}`).toString('base64')}`,
      }),
    )

  const passed = await ask('a secret')
  const refused = await ask('wrong')

  assert.deepEqual([passed.status, passed.headers['x-remote-user']], [200, 'service-account/backup'])
  assert.ok(String(passed.headers['x-envoy-auth-headers-to-remove']).split(', ').includes('authorization'))
  assert.deepEqual(
    [refused.status, refused.headers['www-authenticate']],
    [401, 'Basic realm="service-account", charset="UTF-8"'],
  )
  const [event] = (world.replicas[0]?.log ?? []).filter(({ message }) => message === 'service_account.refused')
  assert.deepEqual([event?.fields['account'], event?.fields['asked_by']], ['backup', '127.0.0.1'])
  assert.equal(world.replicas[0]?.access.at(-1)?.['caller'], 'service_account')
})
