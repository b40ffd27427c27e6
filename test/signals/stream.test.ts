import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Configuration } from 'oidc-provider'
import type { Json } from '../support/signing-provider.ts'
import { caep, risc } from '../support/transmitter.ts'
import { until } from '../support/until.ts'
import { startSignals, type SignalOptions, type SignalWorld } from './world.ts'

const hours = 60 * 60 * 1000
const managed = 'stream: managed, authorization: { env: SIGNALS_AUTHORIZATION }'
const methods = { push: 'urn:ietf:rfc:8935', poll: 'urn:ietf:rfc:8936' }

const startManaged = (t: Parameters<typeof startSignals>[0], options: SignalOptions = {}) =>
  startSignals(t, { signals: managed, ...options })

const lines = (world: SignalWorld, name: string) =>
  world.replicas.flatMap(({ log }) => log.filter(({ message }) => message === name).map(({ fields }) => fields))

const says = (world: SignalWorld, name: string) => until(name, () => lines(world, name).length > 0)

const receiver = (world: SignalWorld) => `${world.url}/.gatehouse/security-events`

test('The gateway makes a stream with push delivery, verifies it, and receives its events', async (t) => {
  const world = await startManaged(t, {
    signals: `${managed}, push_secret: { env: PHPMYADMIN_PASSWORD }, events: { session-revoked: ignore }`,
  })
  const { streams } = world.transmitter

  await until('it is verified', () => streams.sent('POST', '/ssf/verify').length === 1)

  assert.deepEqual(
    streams.requests.map(({ method, path }) => `${method} ${path}`),
    ['GET /ssf/stream', 'POST /ssf/stream', 'GET /ssf/stream', 'GET /ssf/status', 'POST /ssf/verify'],
  )
  assert.deepEqual(
    streams.sent('GET', '/ssf/stream').map(({ stream_id }) => stream_id),
    [null, 'stream-1'],
  )
  assert.ok(streams.requests.every(({ authorization }) => authorization === 'Bearer the token of the stream'))
  const { delivery, events_requested, description } = streams.sent('POST', '/ssf/stream')[0]?.body ?? {}
  assert.deepEqual(delivery, {
    method: methods.push,
    endpoint_url: receiver(world),
    authorization_header: 'a password that only the gateway knows',
  })
  assert.equal(description, `Gatehouse, ${receiver(world)}`)
  const events = events_requested as readonly string[]
  assert.deepEqual(
    [events.includes(`${risc}account-disabled`), events.includes(`${caep}session-revoked`)],
    [true, false],
  )
  assert.deepEqual(lines(world, 'signals.stream_created'), [{ stream: 'stream-1' }])
})

test('A verification event with the state of the gateway is logged, also when another replica receives it', async (t) => {
  const world = await startManaged(t, { store: 'redis', replicas: 2 })

  await says(world, 'signals.verified')

  assert.equal(world.transmitter.streams.all.size, 1)
  assert.equal(lines(world, 'signals.verified').length, 1)
  assert.equal(lines(world, 'signals.not_verified').length, 0)
})

test('A stream that the gateway made is found again, and changed when the configuration differs', async (t) => {
  const world = await startManaged(t, { store: 'redis' })
  const { streams } = world.transmitter
  await says(world, 'signals.verified')
  const own = streams.all.get('stream-1') as Json
  streams.all.set('stream-0', { ...own, stream_id: 'stream-0', description: 'of another receiver', delivery: {} })
  streams.all.set('stream-1', { ...own, events_requested: [] })

  await world.afterHours(2, 'it is updated', () => lines(world, 'signals.stream_updated').length > 0)

  const [patch, ...others] = streams.sent('PATCH', '/ssf/stream')
  assert.equal(others.length, 0)
  assert.equal(patch?.body['stream_id'], 'stream-1')
  assert.deepEqual(streams.all.get('stream-1')?.['events_requested'], own['events_requested'])
  assert.equal(streams.all.get('stream-0')?.['description'], 'of another receiver')
  assert.equal(streams.sent('POST', '/ssf/stream').length, 1)

  const restarted = await world.startReplica()
  await world.replicas[0]?.stop()
  await until('it looks', () => streams.sent('GET', '/ssf/stream').length >= 3)
  await until('it is the holder', () => restarted.log.length > 0)
  assert.equal(streams.sent('POST', '/ssf/stream').length, 1)
})

test('A transmitter that keeps less than the gateway wants is not asked for it again and again', async (t) => {
  const world = await startManaged(t, { prepare: ({ streams }) => void (streams.more = { events_requested: ['a'] }) })
  const { streams } = world.transmitter
  await says(world, 'signals.verified')

  await world.afterHours(2, 'it looks again', () => streams.sent('GET', '/ssf/status').length >= 2)

  assert.equal(streams.sent('PATCH', '/ssf/stream').length, 0)
})

test('A stream with the URL of the gateway is used when the store is empty, and PUT replaces it without PATCH', async (t) => {
  const world = await startManaged(t, {
    prepare: ({ streams }) => {
      streams.fault('/ssf/stream', (req, res, pass) => {
        if (req.method === 'PATCH') return void res.writeHead(405).end()
        // The URL of the gateway is not known before.
        if (req.method === 'POST') return void res.writeHead(409).end()
        pass()
      })
    },
  })
  const { streams } = world.transmitter
  await says(world, 'signals.unavailable')
  assert.match(String(lines(world, 'signals.unavailable')[0]?.['reason']), /permits no further stream/)
  assert.equal((await world.browser().get(`${world.url}/`)).status, 200)
  streams.all.set('theirs', {
    stream_id: 'theirs',
    delivery: { delivery_method: methods.push, url: receiver(world) },
    events_requested: ['a'],
  })

  await says(world, 'signals.stream_updated')

  assert.equal(streams.sent('PUT', '/ssf/stream').length, 1)
  assert.deepEqual(streams.all.get('theirs')?.['delivery'], { method: methods.push, endpoint_url: receiver(world) })
})

test('A paused stream is enabled, and a disabled one is reported and left alone', async (t) => {
  for (const [status, message] of [
    ['paused', 'signals.stream_enabled'],
    ['disabled', 'signals.stream_disabled'],
  ] as const) {
    const world = await startManaged(t, { prepare: ({ streams }) => void streams.statuses.set('stream-1', status) })
    await says(world, message)
    const { streams } = world.transmitter
    assert.equal(streams.statuses.get('stream-1'), status === 'paused' ? 'enabled' : 'disabled')
    assert.equal(streams.sent('POST', '/ssf/status').length, status === 'paused' ? 1 : 0)
    await world.replicas[0]?.stop()
  }
})

test('A verification event that does not come, and another audience, are reported', async (t) => {
  const world = await startManaged(t, {
    prepare: ({ streams }) => {
      streams.more = { aud: 'https://other.example', min_verification_interval: 7_200 }
      streams.fault('/ssf/verify', (_req, res) => void res.writeHead(204).end())
    },
  })
  const { streams } = world.transmitter
  await says(world, 'signals.other_audience')
  assert.equal(lines(world, 'signals.other_audience')[0]?.['aud'], 'https://other.example')
  world.moveClock(61_000)
  await says(world, 'signals.not_verified')
  assert.equal(streams.sent('POST', '/ssf/verify').length, 1)
  world.moveClock(7_200_000)

  await until('it is requested again', () => streams.sent('POST', '/ssf/verify').length === 2)
})

test('A managed stream with poll delivery is polled at the URL that the transmitter chooses', async (t) => {
  const world = await startManaged(t, { signals: `${managed}, delivery: poll` })
  const { streams } = world.transmitter

  await says(world, 'signals.verified')
  await until('it is acknowledged', () => streams.acked.length === 1)
  assert.deepEqual(streams.sent('POST', '/ssf/stream')[0]?.body['delivery'], { method: methods.poll })

  // Without the endpoint for streams, events arrive nevertheless.
  const undo = streams.fault('/ssf/stream', (_req, res) => void res.writeHead(500).end())
  world.moveClock(2 * hours)
  await until('a poll waits', () => streams.waiting === 1)
  streams.release()
  await says(world, 'signals.unavailable')
  const sub_id = world.person('jane')
  const jti = streams.add(world.transmitter.token({ sub_id, events: { [`${risc}account-disabled`]: {} } }))
  await until('it is acknowledged', () => streams.acked.includes(jti))
  undo()
  world.moveClock(60_000)
  await until('a poll waits', () => streams.waiting === 1)
  streams.release()
  await says(world, 'signals.available')
})

test('An access token of the client is kept, and renewed after a 401 and before it expires', async (t) => {
  const adjust = (base: Configuration): Configuration => ({
    ...base,
    clients: (base.clients ?? []).map((client) => ({
      ...client,
      grant_types: [...(client.grant_types ?? []), 'client_credentials'],
    })),
    features: { ...base.features, clientCredentials: { enabled: true } },
    ttl: { ...base.ttl, ClientCredentials: 600 },
  })
  const issued: string[] = []
  const world = await startManaged(t, {
    signals: 'stream: managed, delivery: poll, authorization: { client_credentials: {} }',
    provider: { adjust },
    prepare: ({ streams }) => {
      streams.accepts = (authorization = '') => {
        if (!issued.includes(authorization)) issued.push(authorization)
        return authorization.startsWith('Bearer ') && issued.length !== 1
      }
    },
  })
  const { streams } = world.transmitter

  await says(world, 'signals.verified')
  assert.equal(issued.length, 2)
  assert.deepEqual(
    streams.requests.slice(0, 2).map(({ authorization }) => authorization),
    issued,
  )
  world.moveClock(24 * hours)
  await until('a poll waits', () => streams.waiting === 1)
  streams.release()
  await until('a third token', () => issued.length === 3)
  assert.doesNotMatch(JSON.stringify(world.replicas[0]?.log), new RegExp(issued.join('|').replaceAll('Bearer ', '')))
})

test('Endpoints that are not https get no credentials', async (t) => {
  const world = await startManaged(t, {
    prepare: (transmitter) => {
      transmitter.metadata = { ...transmitter.metadata, configuration_endpoint: 'ftp://127.0.0.1/stream' }
    },
  })

  await says(world, 'signals.unavailable')

  assert.match(String(lines(world, 'signals.unavailable')[0]?.['reason']), /no configuration_endpoint with https/)
  assert.equal(world.transmitter.streams.requests.length, 0)
})
