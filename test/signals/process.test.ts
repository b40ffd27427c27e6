// Slow: 6 s, processes with workers are killed between events
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { test, type TestContext } from 'node:test'
import { Browser } from '../support/browser.ts'
import { childrenOf, isAlive, startCommand, type Command } from '../support/command.ts'
import { prepareGateway, prepareReplica, type Surroundings } from '../support/gateway-process.ts'
import { expireLeases } from '../support/leases.ts'
import { gatehouseWith } from '../support/pauses.ts'
import { startRedis } from '../support/redis.ts'
import { audience, caep, risc, startTransmitter, type Transmitter } from '../support/transmitter.ts'
import { until } from '../support/until.ts'

const disabled = `${risc}account-disabled`

interface Processes {
  readonly around: Surroundings
  readonly transmitter: Transmitter
  start(of?: Surroundings): Promise<Command>
  event(type: string): string
  /** The leases of killed processes end now. */
  leasesEnd(): Promise<void>
}

/** The programs look often whether they can take the lease. */
const program = gatehouseWith({ lookForSignalsMs: 100, retrySignalsMs: 100 })

async function prepare(t: TestContext, signals: string, settings = ''): Promise<Processes> {
  const transmitter = await startTransmitter(t)
  const redis = await startRedis(t)
  const around = await prepareGateway(t, { store: `{ redis: { url: "${redis.url}" } }`, settings })
  write(around, `{ transmitter: "${transmitter.issuer}", audience: [${audience}], signing_alg: ES256, ${signals} }`)
  const env = { ...around.env, SIGNALS_AUTHORIZATION: 'Bearer of the stream' }
  return {
    around,
    transmitter,
    start: async (of = around) => {
      const gateway = startCommand(t, ['run', '--config', of.file], { env, program })
      await gateway.said('gatehouse is ready')
      return gateway
    },
    leasesEnd: () => expireLeases(redis),
    event: (type) => {
      const sub_id = { format: 'iss_sub', iss: around.provider.issuer, sub: 'jane' }
      return transmitter.token({ sub_id, events: { [type]: {} } })
    },
  }
}

/** Replaces `signals` in the configuration file. */
function write({ file }: Surroundings, signals: string): void {
  const text = readFileSync(file, 'utf8').replace(/^ {2}signals: .*\n/m, '')
  writeFileSync(file, text.replace('\n  client_id: orders\n', `\n  client_id: orders\n  signals: ${signals}\n`))
}

const managed = 'stream: managed, authorization: { env: SIGNALS_AUTHORIZATION }'
const polled = `delivery: poll, ${managed}`

const isIn = async (around: Surroundings, jane: Browser) =>
  (await fetch(`${around.url}/`, { headers: { cookie: jane.cookieHeader }, redirect: 'manual' })).status === 200

const obeyed = (gateways: readonly Command[]) =>
  gateways.flatMap((gateway) => gateway.log().filter(({ msg }) => msg === 'signal.obeyed'))

test('A kill between an event and its acknowledgement, or before the event took effect, loses no event', async (t) => {
  const { around, transmitter, start, event, leasesEnd } = await prepare(t, polled)
  const { streams } = transmitter
  const one = await start()
  await until('a poll waits', () => streams.waiting === 1)
  const jane = new Browser('jane')
  await jane.get(`${around.url}/`)
  const replica = await prepareReplica(around)
  const two = await start(replica)
  // The request with the acknowledgement gets no response, and is not read.
  const undo = streams.fault('/ssf/poll', (_req, _res, pass, body) => {
    if (body['ack'] === undefined) pass()
    else one.child.kill('SIGKILL')
  })

  const jti = streams.add(event(disabled))
  assert.equal(await one.ended, 'SIGKILL')
  undo()
  await leasesEnd()
  await until('the other one acknowledges it', () => streams.acked.includes(jti))

  assert.equal(await isIn(replica, jane), false)
  // The log may arrive after the acknowledgement. A killed process may lose its last lines.
  await two.said('signal.replayed')
  assert.deepEqual([obeyed([two]).length, two.log().filter(({ msg }) => msg === 'signal.replayed').length], [0, 1])
  assert.ok(obeyed([one]).length <= 1, 'the event took effect once')
  assert.equal(streams.all.size, 1)

  // UserInfo is read before the event takes effect, and does not respond.
  const third = await start()
  await jane.get(`${around.url}/`)
  around.provider.fault('/oauth/userinfo', () => void two.child.kill('SIGKILL'))
  const second = streams.add(event(`${caep}token-claims-change`))
  assert.equal(await two.ended, 'SIGKILL')
  await leasesEnd()
  around.provider.fault('/oauth/userinfo', (_req, _res, pass) => pass())
  await until('the third one acknowledges it', () => streams.acked.includes(second))

  await third.said('signal.obeyed')
  assert.equal(obeyed([two, third]).length, 1)
})

test('With two workers, one polls, and another one goes on when it dies', async (t) => {
  const { around, transmitter, start, event, leasesEnd } = await prepare(t, polled, 'workers: 2')
  const { streams } = transmitter
  const gateway = await start()
  await until('a poll waits', () => streams.waiting === 1)
  const jane = new Browser('jane')
  await jane.get(`${around.url}/`)

  const jti = streams.add(event(disabled))
  await until('it is acknowledged', () => streams.acked.includes(jti))
  for (let times = 0; times < 4; times += 1) assert.equal(await isIn(around, jane), false)
  for (const pid of childrenOf(gateway.pid)) {
    await until('a poll waits', () => streams.waiting === 1)
    process.kill(pid, 'SIGKILL')
    await until('it has ended', () => !isAlive(pid))
    await leasesEnd()
  }
  const next = streams.add(event(`${caep}session-revoked`))
  await until('it is acknowledged', () => streams.acked.includes(next))
  gateway.child.kill('SIGTERM')
  assert.equal(await gateway.ended, 0)
  assert.equal(streams.all.size, 1)
})

test('With two workers, a managed stream with push delivery is made once and verified', async (t) => {
  const { around, transmitter, start, event } = await prepare(t, managed, 'workers: 2')
  const gateway = await start()
  await gateway.said('signals.verified')
  const jane = new Browser('jane')
  await jane.get(`${around.url}/`)

  assert.equal((await transmitter.push(around.url, event(disabled))).status, 202)

  for (let times = 0; times < 4; times += 1) assert.equal(await isIn(around, jane), false)
  assert.equal(transmitter.streams.sent('POST', '/ssf/stream').length, 1)
})

test('A reload changes the delivery of the stream, and polls take effect at once', async (t) => {
  const { around, transmitter, start, event } = await prepare(t, managed)
  const { streams } = transmitter
  const gateway = await start()
  await gateway.said('signals.verified')
  const own = `transmitter: "${transmitter.issuer}", audience: [${audience}], signing_alg: ES256`

  write(around, `{ ${own}, ${polled} }`)
  gateway.child.kill('SIGHUP')
  await gateway.said('signals.stream_updated')
  const jti = streams.add(event(disabled))
  await until('it is acknowledged', () => streams.acked.includes(jti))
  assert.equal(streams.all.size, 1)

  write(around, `{ ${own} }`)
  await until('a poll waits', () => streams.waiting === 1)
  gateway.child.kill('SIGHUP')
  await until('no poll waits', () => streams.waiting === 0)
})
