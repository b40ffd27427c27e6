import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startBed } from './support.ts'

test('The gateway is not affected by GHSA-6x33-pw7p-hmpq (http-proxy): `Expect` with content ends the process', async (t) => {
  const bed = await startBed(t)
  const cookie = await bed.signIn()

  for (const body of ['x'.repeat(1025), 'x'.repeat(1024 * 1024)]) {
    const response = await bed.ask('/orders', { method: 'POST', cookie, headers: ['Expect: 100-continue'], body })
    assert.match(response.text, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /)
    assert.equal(bed.seen.at(-1)?.body.length, body.length)
  }
  assert.equal((await bed.ask('/public/a')).status, 200)
})
