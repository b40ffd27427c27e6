import assert from 'node:assert/strict'
import { test } from 'node:test'
import { caep, risc, type Transmitter } from '../support/transmitter.ts'
import { until } from '../support/until.ts'
import { startSignals, type SignalOptions, type SignalWorld } from './world.ts'

const secret = 'Bearer the token of the stream'
const disabled = `${risc}account-disabled`

const polling = (transmitter: Transmitter, more = '') =>
  `delivery: poll, poll_url: "${transmitter.streams.pollUrl}", authorization: { env: SIGNALS_AUTHORIZATION } ${more}`

const startPolling = (t: Parameters<typeof startSignals>[0], options: SignalOptions = {}) =>
  startSignals(t, { signals: polling, ...options })

const tokenFor = ({ transmitter, person }: SignalWorld, type = disabled, sub = 'jane') =>
  transmitter.token({ sub_id: person(sub), events: { [type]: {} } })

test('A polled event ends the sessions of a person, and is acknowledged after that', async (t) => {
  const world = await startPolling(t)
  const { streams } = world.transmitter
  streams.accepts = (authorization) => authorization === secret
  const [jane, zoe] = [world.browser(), world.browser('zoe')]
  for (const browser of [jane, zoe]) await browser.get(`${world.url}/`)
  await until('a poll waits', () => streams.waiting === 1)

  const jti = streams.add(tokenFor(world))
  await until('it is acknowledged', () => streams.acked.includes(jti))

  assert.deepEqual([await world.hasSession(jane), await world.hasSession(zoe)], [false, true])
  await until('the next poll waits', () => streams.waiting === 1)
  assert.deepEqual(streams.requests[0]?.body, { maxEvents: 25, returnImmediately: false })
  assert.deepEqual(streams.requests.at(-1)?.body, { maxEvents: 25, returnImmediately: false, ack: [jti] })
  assert.deepEqual(
    world.audits('signal.obeyed').map(({ action, matched, sub }) => [action, matched, sub]),
    [['end', 1, 'jane']],
  )
  assert.equal(streams.requests.length, 2)
})

test('Invalid events are reported with their error, and the good ones among them take effect', async (t) => {
  const world = await startPolling(t, {
    prepare: ({ streams, token }) => {
      const events = { [`${caep}session-revoked`]: {} }
      streams.add('garbage', 'garbage')
      streams.add('garbage', '__proto__')
      streams.add(17, 'number')
      streams.add('x'.repeat(20_000), 'huge')
      streams.add(token({ events, jti: 'issuer', iss: 'https://other.example' }))
      streams.add(token({ events, jti: 'audience', aud: 'https://other.example' }))
      streams.add(token({ events, jti: 'one' }), 'another')
      const verification = 'https://schemas.openid.net/secevent/ssf/event-type/verification'
      streams.add(token({ events: { [verification]: { state: 'not sent' } }, jti: 'state' }))
      streams.add(token({ events, sub_id: { format: 'opaque', id: 'jane' }, jti: 'good' }))
    },
  })
  const { streams } = world.transmitter

  await until('all are finished', () => streams.queue.size === 0)

  assert.deepEqual(streams.acked, ['good'])
  const codes = Object.entries(streams.errors).map(([jti, error]) => [jti, (error as { err: string }).err])
  assert.deepEqual(codes.toSorted(), [
    ['another', 'invalid_request'],
    ['audience', 'invalid_audience'],
    ['garbage', 'invalid_request'],
    ['huge', 'invalid_request'],
    ['issuer', 'invalid_issuer'],
    ['number', 'invalid_request'],
    ['state', 'invalid_state'],
  ])
  assert.equal(world.audits('signal.refused').length, 8)
  assert.equal(world.audits('signal.obeyed').length, 1)
})

test('An event that cannot be carried out is not acknowledged, comes again, and holds up no other event', async (t) => {
  const world = await startPolling(t)
  const { streams } = world.transmitter
  const [jane, zoe] = [world.browser(), world.browser('zoe')]
  for (const browser of [jane, zoe]) await browser.get(`${world.url}/`)
  const mend = world.provider.fault('/oauth/userinfo', (_req, res) => void res.writeHead(500).end())

  const stuck = tokenFor(world, `${caep}token-claims-change`)
  const stuckJti = streams.add(stuck)
  const ended = streams.add(tokenFor(world, disabled, 'zoe'))
  await until('the other one is acknowledged', () => streams.acked.includes(ended))
  assert.ok(!streams.acked.includes(stuckJti))
  assert.equal(await world.hasSession(zoe), false)
  mend()
  await until('it is acknowledged', () => streams.acked.includes(stuckJti))

  assert.equal(await world.hasSession(jane), true)
  assert.equal(world.audits('signal.obeyed').length, 2)
})

test('A transmitter that forgets acknowledgements, or has nothing and responds at once, is asked slowly', async (t) => {
  const world = await startPolling(t, { retryMs: 300 })
  const { streams } = world.transmitter
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  streams.forgetsAcks = true
  const token = tokenFor(world)

  const jti = streams.add(token)
  await until('it is acknowledged twice', () => streams.acked.length >= 2)
  assert.ok(streams.polls <= 4, `${streams.polls} polls`)
  assert.ok(world.audits('signal.replayed').length >= 1)
  assert.equal(world.audits('signal.obeyed').length, 1)
  streams.forgetsAcks = false
  streams.hurries = true
  const before = performance.now()
  const polls = streams.polls
  await until('another poll', () => streams.polls >= polls + 1)
  assert.ok(performance.now() - before >= 290)
  assert.deepEqual([...new Set(streams.acked)], [jti])
})

for (const [what, status, headers] of [
  ['is unavailable', 503, {}],
  ['asks to wait', 429, { 'retry-after': '1' }],
  ['rejects the credentials', 401, {}],
  ['redirects', 307, { location: 'http://127.0.0.1:9/' }],
] as const)
  test(`A transmitter that ${what} is asked again after a pause, and the log says it once`, async (t) => {
    const times: number[] = []
    const world = await startPolling(t, {
      retryMs: 300,
      prepare: ({ streams }) => {
        streams.fault('/ssf/poll', (_req, res, pass) => {
          if (times.push(performance.now()) > 1) pass()
          else res.writeHead(status, headers).end()
        })
      },
    })
    await until('it was asked twice', () => times.length >= 2)
    const pauseMs = (times[1] ?? 0) - (times[0] ?? 0)
    const jti = world.transmitter.streams.add(tokenFor(world))
    await until('it works', () => world.transmitter.streams.acked.includes(jti))

    assert.ok(pauseMs >= (status === 429 ? 990 : 290), `${pauseMs} ms`)
    const lines = world.replicas.flatMap(({ log }) => log)
    const warnings = lines.filter(({ message }) => message === 'signals.unavailable')
    assert.deepEqual(
      warnings.map(({ fields }) => String(fields['reason']).replace(/; .*/, '')),
      [`the events were not polled: status ${status}`],
    )
    assert.equal(lines.filter(({ message }) => message === 'signals.available').length, 1)
    assert.doesNotMatch(JSON.stringify(lines), /the token of the stream/)
  })

test('A response that is huge, or of another shape, is an error and no event', async (t) => {
  const contents = ['x'.repeat(2 ** 20 + 1), '[]', '{"sets": [1]}', 'garbage']
  let sent = 0
  const world = await startPolling(t, {
    prepare: ({ streams }) => {
      const undo = streams.fault('/ssf/poll', (_req, res) => {
        const content = contents.slice(-2)[sent]
        if ((sent += 1) >= 2) undo()
        res.writeHead(200, { 'content-type': 'application/json' }).end(content)
      })
    },
  })
  await until('it works', () => world.transmitter.streams.waiting === 1)

  const warnings = world.replicas.flatMap(({ log }) => log).filter(({ message }) => message === 'signals.unavailable')
  assert.equal(warnings.length, 2)
  assert.doesNotMatch(JSON.stringify(warnings), /garbage/)
})

test('A shutdown ends a poll that waits', async (t) => {
  const world = await startPolling(t)
  await until('a poll waits', () => world.transmitter.streams.waiting === 1)
  const began = performance.now()

  await world.replicas[0]?.stop()

  assert.ok(performance.now() - began < 5_000)
  await until('no poll waits', () => world.transmitter.streams.waiting === 0)
})

test('Of two replicas one polls, and the other goes on when it stops', async (t) => {
  const world = await startPolling(t, { store: 'redis', replicas: 2 })
  const { streams } = world.transmitter
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  const other = world.replicas[1]?.url ?? ''
  await until('a poll waits', () => streams.waiting === 1)
  const first = streams.add(tokenFor(world, `${caep}session-revoked`, 'zoe'))
  await until('it is acknowledged', () => streams.acked.includes(first))

  const [one, two] = world.replicas
  const holder = one?.log.some(({ message }) => message === 'signal.obeyed') === true ? one : two
  const rest = holder === one ? two : one
  const isUp = (replica = one) =>
    replica?.metrics.collect().find(({ name }) => name === 'gatehouse_signals_stream_up')?.cells[0]?.values[0]
  assert.deepEqual([isUp(holder), isUp(rest)], [1, undefined])
  await holder?.stop()
  await until('a poll waits again', () => streams.waiting === 1)
  const second = streams.add(tokenFor(world))
  await until('it is acknowledged', () => streams.acked.includes(second))

  const alive = holder === one ? other : world.url
  assert.equal((await jane.fetch(`${alive}/api/me`)).status, 401)
})

test('While the store is away nothing is acknowledged, and the event comes again', async (t) => {
  const world = await startPolling(t, { store: 'redis' })
  const { streams } = world.transmitter
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  await until('a poll waits', () => streams.waiting === 1)

  world.redis?.freeze()
  const jti = streams.add(tokenFor(world))
  await until('it was tried', () => world.audits('signal.refused').length > 0)
  assert.deepEqual(streams.acked, [])
  world.redis?.resume()
  await until('it is acknowledged', () => streams.acked.includes(jti))

  assert.equal(await world.hasSession(jane), false)
  assert.equal(world.audits('session.ended').length, 1)
})
