import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startSignals, type SignalOptions, type SignalWorld } from '../signals/world.ts'
import type { Json } from '../support/signing-provider.ts'
import { risc } from '../support/transmitter.ts'
import { until } from '../support/until.ts'

const hours = 60 * 60 * 1000

/** A transmitter that only creates and reads streams, as CAEP Interoperability Profile 1.0 asks. */
const startUnchangeable = (
  t: Parameters<typeof startSignals>[0],
  delivery: 'push' | 'poll',
  options: SignalOptions = {},
) =>
  startSignals(t, {
    ...options,
    signals: `stream: managed, authorization: { env: SIGNALS_AUTHORIZATION }, delivery: ${delivery}`,
    prepare: ({ streams }) => {
      streams.fault('/ssf/stream', (req, res, pass) => {
        if (req.method === 'PATCH' || req.method === 'PUT') res.writeHead(405).end()
        else pass()
      })
    },
  })

const lines = ({ replicas }: SignalWorld, name: string) =>
  replicas.flatMap(({ log }) => log.filter(({ message }) => message === name))

const changes = ({ transmitter: { streams } }: SignalWorld) =>
  streams.requests.filter(({ method }) => method === 'PATCH' || method === 'PUT').length

/** Changes the events of the stream at the transmitter. */
function withOtherEvents({ transmitter: { streams } }: SignalWorld) {
  streams.all.set('stream-1', { ...(streams.all.get('stream-1') as Json), events_requested: ['a'] })
  return streams
}

/** An event that waits to be polled is carried out. */
async function receivesEvents(world: SignalWorld): Promise<void> {
  const { streams, token } = world.transmitter
  const event = { sub_id: world.person('jane'), events: { [`${risc}account-disabled`]: {} } }
  const jti = streams.add(token(event))
  await until('it is acknowledged', () => streams.acked.includes(jti))
}

test('After a restart with the memory store, a stream that is as wanted is polled and not changed', async (t) => {
  const world = await startUnchangeable(t, 'poll')
  await receivesEvents(world)
  await world.replicas[0]?.stop()

  await world.startReplica()

  await receivesEvents(world)
  assert.equal(changes(world), 0)
  assert.equal(lines(world, 'signals.unavailable').length, 0)
})

test('A stream with other events is polled although the transmitter permits no change, and the log says what to do', async (t) => {
  const world = await startUnchangeable(t, 'poll')
  await receivesEvents(world)
  withOtherEvents(world)
  await world.replicas[0]?.stop()

  await world.startReplica()

  await receivesEvents(world)
  const [warning, ...more] = lines(world, 'signals.stream_not_updated')
  assert.deepEqual(more, [])
  assert.match(String(warning?.fields['hint']), /Delete it at the transmitter/)
  assert.equal(changes(world), 2, 'PUT and PATCH were tried once')
  assert.equal(lines(world, 'signals.unavailable').length, 0)
})

test('With push delivery, the gateway tries a change once and requests a verification event', async (t) => {
  const world = await startUnchangeable(t, 'push')
  await until('it is verified', () => lines(world, 'signals.verified').length === 1)
  withOtherEvents(world)
  await world.afterHours(2, 'it says so', () => lines(world, 'signals.stream_not_updated').length === 1)
  assert.equal(changes(world), 2)

  await world.afterHours(25, 'it is verified again', () => lines(world, 'signals.verified').length >= 2)

  assert.equal(changes(world), 2)
  assert.equal(lines(world, 'signals.unavailable').length, 0)
})

test('A stream is polled while its update fails', async (t) => {
  const world = await startUnchangeable(t, 'poll')
  await receivesEvents(world)
  const streams = withOtherEvents(world)
  streams.fault('/ssf/stream', (req, res, pass) => {
    if (req.method === 'PATCH' || req.method === 'PUT') res.writeHead(500).end()
    else pass()
  })
  await world.replicas[0]?.stop()

  await world.startReplica()

  await until('it says so', () => lines(world, 'signals.unavailable').length === 1)
  await receivesEvents(world)
})

test('A stream that was found without a note is replaced by PUT, and another change is a PATCH', async (t) => {
  const world = await startSignals(t, {
    signals: 'stream: managed, authorization: { env: SIGNALS_AUTHORIZATION }, delivery: poll',
  })
  const { streams } = world.transmitter
  await receivesEvents(world)
  withOtherEvents(world)
  await world.replicas[0]?.stop()
  await world.startReplica()
  await until('it is replaced', () => streams.sent('PUT', '/ssf/stream').length === 1)
  await until('a poll waits', () => streams.waiting === 1)
  withOtherEvents(world)
  world.moveClock(2 * hours)
  streams.release()

  await until('it is updated', () => streams.sent('PATCH', '/ssf/stream').length === 1)

  assert.equal(streams.sent('PUT', '/ssf/stream').length, 1)
})
