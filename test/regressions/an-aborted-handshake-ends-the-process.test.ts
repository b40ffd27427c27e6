import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { systemClock } from '../../src/core/clock.ts'
import { RedisStore } from '../../src/session/store/redis/redis-store.ts'
import { recorder, settings } from '../session/redis-stores.ts'
import { issueCertificates } from '../support/certificates.ts'
import { startRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

/**
 * A proxy to a server that delivers all bytes of the server at once, when both sides have sent
 * everything.
 */
async function heldWay(t: TestContext, target: number) {
  const held: { readonly client: Socket; readonly isOver: Promise<unknown> }[] = []
  const way = createServer({ allowHalfOpen: true }, (client) => {
    const server = connect({ port: target, host: '127.0.0.1', allowHalfOpen: true })
    const responses: Buffer[] = []
    for (const socket of [client, server]) socket.on('error', () => {})
    client.pipe(server)
    server.on('data', (bytes) => responses.push(bytes))
    server.on('end', () => client.end(Buffer.concat(responses)))
    held.push({ client, isOver: once(client, 'close') })
  }).listen(0, '127.0.0.1')
  await once(way, 'listening')
  t.after(() => {
    for (const { client } of held) client.destroy()
    way.close()
  })
  return { port: (way.address() as AddressInfo).port, held }
}

// ioredis listens for the first error of a connection only. A TLS handshake that breaks off has a
// second error, and an error without a listener ends the process.
test('A connection that closes during its TLS handshake does no harm, whatever its certificate is', async (t) => {
  const { server, client } = issueCertificates()
  const redis = await startRedis(t, { tls: server })
  const way = await heldWay(t, redis.port)
  const url = new URL(`rediss://127.0.0.1:${way.port}`)
  const config = { ...settings, kind: 'redis' as const, url, tls: { ...client, ca: undefined } }
  const store = new RedisStore(config, { log: recorder(), clock: systemClock })
  t.after(() => store.close())
  await until('both connections have begun', () => way.held.length === 2)

  await store.close()

  await Promise.all(way.held.map(({ isOver }) => isOver))
})
