import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Browser } from '../support/browser.ts'
import { startCommand } from '../support/command.ts'
import { prepareGateway } from '../support/gateway-process.ts'
import { startRedis } from '../support/redis.ts'

// The configuration lost the objects of its classes on the way to a worker, so each such rule was
// an internal error.
test('Rules on networks, times and patterns apply in workers as in one process', async (t) => {
  const redis = await startRedis(t)
  const around = await prepareGateway(t, {
    store: `{ redis: { url: "${redis.url}" } }`,
    settings: 'workers: 2',
    rules: `[
      { path: /near/*, networks: [127.0.0.0/8], access: public },
      { path: /always/*, require: { time: { from: '00:00', to: '24:00', zone: UTC } }, headers: { X-Remote-User: { claim: sub, map: { jane: J } } } },
      { path: /jane/*, require: { claim: sub, matches: 'j[a-z]+' } },
      { path: /others/*, require: { not: { claim: sub, matches: 'j[a-z]+' } } },
    ]`,
  })
  const gateway = startCommand(t, ['run', '--config', around.file], { env: around.env })
  await gateway.said('gatehouse is ready')
  const jane = new Browser('jane')

  assert.equal((await jane.send(`${around.url}/near/a`)).body, 'for anybody')
  assert.equal((await jane.get(`${around.url}/always/a`)).body, 'for J')
  assert.equal((await jane.send(`${around.url}/jane/a`)).body, 'for jane')
  assert.equal((await jane.send(`${around.url}/others/a`)).status, 403)
})
