import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, type JSONWebKeySet, jwtVerify } from 'jose'
import { request } from 'undici'
import WebSocket from 'ws'
import { loadConfig } from '../../src/config/load.ts'
import { exposition } from '../../src/observe/exposition.ts'
import { replacePauses } from '../support/pauses.ts'
import { until } from '../support/until.ts'
import { type Replica, secrets, startWorld, type WorldOptions } from '../support/world.ts'

const hour = 3_600_000
/** Shorter than the time for which a key is published before it signs. */
const stepMs = 25 * 60_000

/** An application that records the fields of its requests, and of requests with `Upgrade`. */
async function startRecorder(t: TestContext) {
  const seen: (readonly string[])[] = []
  const record = ({ rawHeaders }: IncomingMessage) => void seen.push(rawHeaders)
  const server = createServer((req, res) => {
    record(req)
    res.end('ok')
  })
  server.on('upgrade', (req, socket) => {
    record(req)
    socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n')
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  return { url: new URL(`http://127.0.0.1:${port}`), seen }
}

/**
 * The values of all fields of the last request that somebody could take for the signed identity.
 */
function identitiesIn(seen: readonly (readonly string[])[]): readonly string[] {
  const fields = seen.at(-1) ?? []
  return fields.filter((_, at) => at % 2 === 1 && /gatehouse[^a-z]*identity/i.test(fields[at - 1] ?? ''))
}

const signed = `signed_identity: { claims: [email, fields.costCentre] }
    rules:
      - { path: /open/*, access: public }
      - { path: /maybe/*, access: optional }`

async function start(t: TestContext, options: WorldOptions = {}) {
  const application = await startRecorder(t)
  const world = await startWorld(t, { upstream: application.url, upstreamSettings: signed, ...options })
  return { world, ...application }
}

async function jwksOf({ url }: { readonly url: string }): Promise<JSONWebKeySet> {
  const { statusCode, headers, body } = await request(`${url}/.gatehouse/jwks.json`)
  assert.equal(statusCode, 200)
  assert.equal(headers['cache-control'], 'public, max-age=300')
  assert.match(String(headers['content-type']), /^application\/json/)
  return (await body.json()) as JSONWebKeySet
}

/** @throws {Error} when the replica's keys do not verify the JWT */
async function verify(token: string, issuer: string, at: { readonly url: string }, now = Date.now()) {
  const expected = { issuer, audience: 'orders', typ: 'gatehouse-identity+jwt', currentDate: new Date(now) }
  return (await jwtVerify(token, createLocalJWKSet(await jwksOf(at)), expected)).payload
}

const forged = {
  'x-gatehouse-identity': 'forged',
  X_Gatehouse_Identity: 'forged',
  'X-Gatehouse--Identity': 'forged',
  'x.gatehouse.identity': 'forged',
}

test('The application gets a JWT that it can verify, and never one of a client', async (t) => {
  const { world, seen } = await start(t)
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  const ask = async (path: string, cookie = jane.cookieHeader) => {
    const { body } = await request(`${world.url}${path}`, { headers: { ...forged, cookie, connection: 'close' } })
    await body.dump()
    return identitiesIn(seen)
  }

  const [token = '', ...others] = await ask('/a')
  assert.deepEqual(others, [])
  const payload = await verify(token, world.url, world)
  assert.equal(payload.sub, 'jane')
  assert.equal(payload['email'], 'jane.doe@example.com')
  assert.ok('fields.costCentre' in payload)
  assert.deepEqual(await ask('/b'), [token], 'requests of a session share the JWT')
  assert.deepEqual(await ask('/maybe/a'), [token])

  assert.deepEqual(await ask('/open/a'), [], 'a public path has no identity')
  assert.deepEqual(await ask('/maybe/a', ''), [], 'nobody is signed in')
  for (const key of (await jwksOf(world)).keys) assert.ok(!('d' in key))
})

test('A request with Upgrade has the JWT too', async (t) => {
  const { world, seen } = await start(t)
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  const socket = new WebSocket(`${world.url.replace('http', 'ws')}/ws`, {
    headers: { ...forged, cookie: jane.cookieHeader },
    origin: world.url,
  })

  await once(socket, 'error')

  const [token = '', ...others] = identitiesIn(seen)
  assert.deepEqual(others, [])
  assert.equal((await verify(token, world.url, world)).sub, 'jane')
})

test('Changed claims make a new JWT with the next request', async (t) => {
  const { world, seen } = await start(t)
  world.provider.bend('/oauth/token', (body) => void (body['expires_in'] = 60))
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  const [before = ''] = identitiesIn(seen)

  world.provider.bend('/oauth/userinfo', (body) => void (body['email'] = 'jane@new.example'))
  world.moveClock(61_000)
  await until('the claims are refreshed', async () => {
    await jane.get(`${world.url}/`)
    return decodeJwt(identitiesIn(seen)[0] ?? '')['email'] === 'jane@new.example'
  })

  assert.equal(decodeJwt(before)['email'], 'jane.doe@example.com')
})

test('All replicas verify what any replica signs, while keys rotate', async (t) => {
  const { world, seen } = await start(t, {
    store: 'redis',
    replicas: 2,
    settings: 'signing_keys: { rotate_every: 2h }',
    session: 'idle_timeout: 1d\n  absolute_timeout: 1d',
  })
  world.provider.bend('/oauth/token', (body) => void (body['expires_in'] = 2 * 86_400))
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  const replicas = world.replicas as [Replica, Replica]
  const kids = new Set<string | undefined>()

  for (let passed = 0; passed < 10 * hour; passed += stepMs) {
    for (const replica of replicas) {
      const { statusCode, body } = await request(replica.url, { headers: { cookie: jane.cookieHeader } })
      await body.dump()
      assert.equal(statusCode, 200)
      const token = identitiesIn(seen)[0] ?? ''
      kids.add(decodeProtectedHeader(token).kid)
      for (const at of replicas)
        assert.equal((await verify(token, world.url, at, Date.now() + passed)).sub, 'jane', `after ${passed} ms`)
    }
    world.moveClock(stepMs)
  }

  assert.ok(kids.size >= 4, `${kids.size} keys have signed`)
  const messages = replicas.flatMap(({ log }) => log.map(({ message }) => message))
  assert.equal(messages.filter((message) => message === 'signing_key.created').length, 1)
  assert.ok(messages.includes('signing_key.rotated'))
  assert.match(metricsOf(replicas[0]), /gatehouse_signing_key_age_seconds\{algorithm="ES256"\} \d/)
})

function metricsOf({ metrics }: Replica): string {
  return exposition(metrics.collect())
}

test('Until a key is read from the store, requests of signed-in people and for the key set get 503', async (t) => {
  const { world, redis } = await withoutKeys(t)
  const jwks = () => request(`${world.url}/.gatehouse/jwks.json`)
  const first = await jwks()
  await first.body.dump()
  assert.equal(first.statusCode, 503)
  assert.equal(first.headers['cache-control'], 'no-store')

  await redis.restart()
  await until('the key set is published', async () => {
    const { statusCode, body } = await jwks()
    await body.dump()
    return statusCode === 200
  })
})

async function withoutKeys(t: TestContext) {
  replacePauses(t, { waitForDependenciesMs: 100, retryKeysMs: 50, reconnectToStoreMs: 100 })
  const { world } = await start(t, { store: 'redis' })
  const { redis } = world
  assert.ok(redis !== undefined)
  await redis.kill()
  const replica = await world.startReplica()
  return { world: { ...world, url: replica.url }, redis }
}

test('A reload that adds signed_identity, or changes its algorithm, keeps all JWTs valid', async (t) => {
  const { world, seen } = await start(t, { upstreamSettings: 'rules: []' })
  const [replica] = world.replicas as [Replica]
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  assert.deepEqual(identitiesIn(seen), [])
  const { statusCode, body } = await request(`${world.url}/.gatehouse/jwks.json`)
  await body.dump()
  assert.equal(statusCode, 404)
  const reload = async (from: string, to: string) => {
    writeFileSync(replica.file, readFileSync(replica.file, 'utf8').replace(from, to))
    const loaded = loadConfig(replica.file, secrets)
    assert.ok(loaded.ok)
    await replica.gateway.reload(loaded.config)
    await jane.get(`${world.url}/`)
    return identitiesIn(seen)[0] ?? ''
  }

  const first = await reload('rules: []', 'signed_identity: true')
  const second = await reload('signed_identity: true', 'signed_identity: { algorithm: EdDSA }')

  assert.equal(decodeProtectedHeader(first).alg, 'ES256')
  assert.equal(decodeProtectedHeader(second).alg, 'EdDSA')
  for (const token of [first, second]) assert.equal((await verify(token, world.url, world)).sub, 'jane')
})
