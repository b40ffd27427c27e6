import assert from 'node:assert/strict'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { Keyring } from '../../src/core/seal.ts'
import { Sessions } from '../../src/session/live/live-sessions.ts'
import { PendingEndings } from '../../src/session/live/pending-endings.ts'
import { sessionKey } from '../../src/session/record/record.ts'
import { keysOf, movableClock } from '../provider/expectations.ts'
import { memoryStore } from '../support/memory-store.ts'
import { jwt, paths, rsaKey, startSigningProvider } from '../support/signing-provider.ts'
import { startWorld } from '../support/world.ts'
import { shortLived, startSignedIn } from '../tokens/signed-in.ts'

const hours = 60 * 60_000
const options = { algorithms: ['RS256'] }

test('A key rotation is noticed after the clock is set back', async (t) => {
  const [two, stranger] = [rsaKey('two'), rsaKey('stranger')]
  const provider = await startSigningProvider(t)
  const clock = movableClock()
  const keys = keysOf(t, provider, clock)
  await keys.verify(jwt({}, provider.key), options)
  for (let kid = 0; kid < 10; kid += 1) await assert.rejects(keys.verify(jwt({}, stranger, { kid: `${kid}` }), options))
  provider.publish(two.jwk)

  clock.move(-3 * hours)
  await assert.rejects(keys.verify(jwt({}, stranger), options))
  clock.move(10_000)

  await keys.verify(jwt({}, two), options)
})

test('Keys that could not be read are requested again after the clock is set back', async (t) => {
  const provider = await startSigningProvider(t)
  const clock = movableClock()
  const keys = keysOf(t, provider, clock)
  provider.respond(paths.jwks, (_req, res) => res.writeHead(500).end())
  await assert.rejects(keys.verify(jwt({}, provider.key), options))
  provider.respond(paths.jwks)

  clock.move(-3 * hours)

  await keys.verify(jwt({}, provider.key), options)
})

test('A failed refresh is tried again after the clock is set back', async (t) => {
  const { world, ask } = await startSignedIn(t)
  world.provider.fault('/oauth/token', (_req, res) => res.writeHead(500).end())
  world.moveClock(10 * 60_000)
  assert.equal((await ask()).status, 503)
  world.provider.bend('/oauth/token', shortLived)

  world.moveClock(-5 * 60_000)

  assert.equal((await ask()).status, 200)
})

test('A rate limit does not last longer than its interval after the clock is set back', async (t) => {
  const world = await startWorld(t, { settings: 'limits: { per_client: { sign_ins: 2/m } }' })
  const signIn = async () => {
    const [response] = (await once(get(`${world.url}/.gatehouse/sign-in`), 'response')) as [IncomingMessage]
    response.resume()
    return response.statusCode
  }
  await fetch(`${world.url}/.gatehouse/sign-in`, { redirect: 'manual', headers: { accept: 'text/html' } })
  assert.deepEqual([await signIn(), await signIn(), await signIn()], [303, 303, 429])

  world.moveClock(-2 * hours)
  assert.equal(await signIn(), 429)
  world.moveClock(31_000)

  assert.equal(await signIn(), 303)
})

test('Activity is written to the store after the clock is set back, so that no active person is signed out', async (t) => {
  const clock = movableClock()
  const memory = memoryStore({ maxSessions: 10, clock })
  t.after(() => memory.close())
  const touched: number[] = []
  const touch = memory.touch.bind(memory)
  const store = Object.assign(memory, {
    touch: (...args: Parameters<typeof touch>) => (touched.push(1), touch(...args)),
  })
  const quiet = { debug() {}, info() {}, warn() {}, error() {}, announce() {} }
  const sessions = new Sessions({
    ...{ store, clock, log: quiet, audit: { record: () => {} }, pending: new PendingEndings(quiet) },
    ...{ keyring: new Keyring([Buffer.alloc(32, 1)]), audiences: ['orders'] },
    config: { idleTimeoutMs: hours / 2, absoluteTimeoutMs: 12 * hours, storeOutageGraceMs: 0 },
  })
  const record = { iss: 'i', sub: 's', claims: {}, userinfo_read_at: 0 }
  const tokens = { access_token: 'a', obtained_at: 0, id_token: 'i' }
  const id = await sessions.create('orders', { ...record, tokens }, clock.now())
  assert.ok(id !== undefined)

  clock.move(-2 * hours)
  assert.notEqual(sessions.findInMemory(sessionKey(id)), undefined)

  assert.equal(touched.length, 1)
})
