import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startBed } from './support.ts'

test('The gateway is not affected by GHSA-v574-6498-x57v (@fastify/reply-from): a request goes to another upstream, because both addresses join to the same text', async (t) => {
  const bed = await startBed(t, {
    upstream: `path: /1/
  other: { url: http://127.0.0.1:1, path: /, rules: [{ path: /*, access: public }] }`,
    rules: '[{ path: /*, access: public }]',
  })

  assert.equal((await bed.ask('/1/x')).status, 200)
  for (const target of ['/11/x', '/1x', '/x/1/', '/', '//x']) assert.equal((await bed.ask(target)).status, 502, target)
  assert.deepEqual(
    bed.seen.map(({ url }) => url),
    ['/1/x'],
  )
})
