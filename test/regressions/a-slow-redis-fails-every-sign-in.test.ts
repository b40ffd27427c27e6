import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, createServer, type AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { subTag, tagOf } from '../../src/session/record/record.ts'
import { open, settings } from '../session/redis-stores.ts'
import { newSession, order } from '../session/store-contract.ts'
import { startRedis } from '../support/redis.ts'

/** The delay of each reply of Redis, in ms. */
const latency = 500

/** A proxy to Redis that delays the replies and keeps their order. */
async function slowWay(t: TestContext): Promise<URL> {
  const redis = await startRedis(t)
  const proxy = createServer((client) => {
    const server = connect(redis.port, '127.0.0.1')
    client.pipe(server)
    server.on('data', (bytes) => void setTimeout(() => client.write(bytes), latency))
    for (const socket of [client, server])
      socket.on('error', () => {}).on('close', () => [client, server].forEach((each) => each.destroy()))
  }).listen(0, '127.0.0.1')
  t.after(() => proxy.close())
  await once(proxy, 'listening')
  return new URL(`redis://127.0.0.1:${(proxy.address() as AddressInfo).port}`)
}

test('With the default timeout, sign-ins and logouts succeed when Redis takes half a second for each command', async (t) => {
  const schema = JSON.parse(readFileSync(new URL('../../schemas/gateway.schema.json', import.meta.url), 'utf8'))
  const written = String(schema.definitions.redis.properties.timeout.default)
  const timeoutMs = Number(/^(\d+)s$/.exec(written)?.[1]) * 1000
  const { store } = open(t, { ...settings, kind: 'redis', url: await slowWay(t), timeoutMs })
  await store.ping()
  const iss = 'https://id.example.com/'
  const create = async (person: string) => {
    const now = (await store.time()).earliest
    const session = newSession(now, { sid: person, sub: person, begun_at: now })
    assert.equal(await store.create(session), 'created')
    return session.key
  }
  const at = async () => order((await store.time()).latest)

  await Promise.all([
    create('jane').then(async (key) => assert.equal((await store.endOne(key)).length, 1)),
    create('samir').then(async (key) => assert.equal((await store.endSid(tagOf(key), await at())).length, 1)),
    at().then(async (order) => assert.equal((await store.endSub(subTag(iss, 'zoe'), order)).length, 0)),
  ])
})
