import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net'
import { test } from 'node:test'
import { connectionsFor, createOutbound } from '../../src/provider/outbound.ts'
import { issueCertificates } from '../support/certificates.ts'

test('a request without a connection to the provider ends after the timeout', async (t) => {
  const sockets: Socket[] = []
  // It never takes part in the TLS handshake.
  const server = createTcpServer((socket) => sockets.push(socket)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const outbound = createOutbound({ timeoutMs: 300, ca: undefined })
  t.after(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
    await outbound.close()
  })

  const asking = outbound.fetch(`https://127.0.0.1:${(server.address() as AddressInfo).port}/token`, { method: 'POST' })

  await assert.rejects(asking, { code: 'ERR_PROVIDER_UNAVAILABLE', message: /no response within 300 ms/ })
})

// The last one: undici's own clock, which all its clients share, keeps a timer that was mocked.
test('a request that timed out while it waited for a connection is never sent, so no code or refresh token is used up', async (t) => {
  const asked: (string | undefined)[] = []
  const server = createServer((req, res) => {
    asked.push(req.url)
    if (req.url === '/last') res.end('{}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const outbound = createOutbound({ timeoutMs: 1_000, ca: undefined })
  t.after(async () => {
    server.closeAllConnections()
    server.close()
    await outbound.close()
  })

  // The time is up for all of them before anything else happens.
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const atOnce = Object.values(connectionsFor).reduce((sum, each) => sum + each, 0)
  const responses = Array.from({ length: atOnce + 8 }, (_, n) =>
    outbound.fetch(`${origin}/${n}`, { method: 'POST', body: 'x' }),
  )
  const waitUntil = performance.now() + 20_000
  while (asked.length < atOnce && performance.now() < waitUntil) await new Promise((resolve) => setImmediate(resolve))
  t.mock.timers.tick(1_000)
  for (const response of await Promise.allSettled(responses)) assert.equal(response.status, 'rejected')

  assert.equal((await outbound.fetch(`${origin}/last`, {})).status, 200)
  assert.deepEqual(new Set(asked), new Set([...Array.from({ length: atOnce }, (_, n) => `/${n}`), '/last']))
})

test('With a security profile, only the cipher suites of RFC 9325 are used', async (t) => {
  const { server } = issueCertificates()
  const files = { cert: readFileSync(server.cert), key: readFileSync(server.key) }
  const ca = readFileSync(server.ca, 'utf8')
  const old = { maxVersion: 'TLSv1.2', ciphers: 'ECDHE-ECDSA-AES128-SHA256' } as const
  const listening = createSecureServer({ ...files, ...old }, (_req, res) => res.end('{}')).listen(0, '127.0.0.1')
  t.after(() => {
    listening.closeAllConnections()
    listening.close()
  })
  await once(listening, 'listening')
  const url = `https://localhost:${(listening.address() as AddressInfo).port}/`
  const statusWith = async (profile: 'fapi2' | undefined) => {
    const outbound = createOutbound({ timeoutMs: 5_000, ca, profile })
    t.after(() => outbound.close())
    return (await outbound.fetch(url, {})).status
  }

  assert.equal(await statusWith(undefined), 200)
  await assert.rejects(statusWith('fapi2'), { code: 'ERR_PROVIDER_UNAVAILABLE', message: /handshake failure/i })
})
