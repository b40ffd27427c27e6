import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startBed } from './support.ts'

test('The gateway is not affected by GHSA-w9mr-28mw-j8hg (Oathkeeper), CVE-2025-48865 (Fabio), CVE-2024-45410 (Traefik): `Connection` removes headers that the proxy adds', async (t) => {
  const bed = await startBed(t)
  const cookie = await bed.signIn()

  for (const named of [
    'X-Remote-User',
    'x-remote-user, X-Forwarded-For',
    'close, X-Forwarded-Host, X-REMOTE-USER',
    'X-Forwarded-Proto, X-Email, X-Groups',
  ])
    assert.equal((await bed.ask('/orders', { cookie, headers: [`Connection: ${named}`] })).status, 200)

  for (const { headers } of bed.seen) {
    assert.equal(headers['x-remote-user'], 'jane')
    assert.equal(headers['x-email'], 'jane@example.com')
    assert.equal(headers['x-forwarded-for'], '127.0.0.1')
    assert.ok(headers['x-forwarded-host'] && headers['x-forwarded-proto'])
  }
  assert.equal(bed.seen.length, 4)
})
