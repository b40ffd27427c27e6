import assert from 'node:assert/strict'
import { after, beforeEach, test, type TestContext } from 'node:test'
import { transmitterFindings } from '../../packages/doctor/transmitter.ts'
import { examineTransmitter } from '../../src/provider/examine.ts'
import type { Json } from '../support/signing-provider.ts'
import { startTransmitter } from '../support/transmitter.ts'
import { assertUseful, configOf, finding } from './support.ts'

const transmitter = await startTransmitter({ after } as unknown as TestContext)
const { streams, metadata } = transmitter
const receiverUrl = 'https://orders.example.com/.gatehouse/security-events'
const push = 'urn:ietf:rfc:8935'
const own: Json = {
  stream_id: 'one',
  aud: 'orders',
  delivery: { method: push, endpoint_url: receiverUrl },
  events_delivered: ['https://schemas.openid.net/secevent/risc/event-type/account-disabled'],
}
const managed = 'stream: managed, authorization: { env: SIGNALS_AUTHORIZATION }'

beforeEach(() => {
  transmitter.metadata = metadata
  streams.accepts = (authorization) => authorization === 'Bearer the token of the stream'
  streams.all.clear()
  streams.statuses.clear()
  streams.all.set('other', { stream_id: 'other' })
  streams.all.set('one', own)
})

async function findingsAbout(t: TestContext, settings: string) {
  const more = settings === '' ? '' : `, ${settings}`
  const config = configOf(t, { provider: `signals: { transmitter: "${transmitter.issuer}"${more} }` })
  const [provider] = config.providers
  const { signals } = provider
  assert.ok(signals)
  const findings = transmitterFindings(
    await examineTransmitter({ ...provider, signals }, receiverUrl),
    signals,
    receiverUrl,
  )
  assertUseful(findings)
  return findings
}

const levels = (findings: Awaited<ReturnType<typeof findingsAbout>>) =>
  findings.map(({ id, level }) => `${id.replace('signals.', '')} ${level}`)

test('A stream without problems has only good findings, and doctor changes nothing', async (t) => {
  const before = streams.requests.length
  const findings = await findingsAbout(t, managed)

  assert.deepEqual(levels(findings), ['metadata ok', 'keys ok', 'credentials ok', 'stream ok', 'events ok'])
  assert.match(finding(findings, 'signals.events').what, /does not deliver session-revoked, /)
  assert.ok(streams.requests.slice(before).every(({ method }) => method === 'GET'))
})

test('Doctor finds what keeps events away', async (t) => {
  streams.all.set('one', {
    ...own,
    aud: ['x'],
    delivery: { method: push, endpoint_url: 'https://x.example' },
    description: `Gatehouse, ${receiverUrl}`,
    events_delivered: [],
  })
  streams.statuses.set('one', 'disabled')
  transmitter.metadata = { ...metadata, delivery_methods_supported: ['urn:ietf:rfc:8936'], default_subjects: 'NONE' }
  assert.deepEqual(levels(await findingsAbout(t, managed)), [
    ...['metadata ok', 'keys ok', 'delivery warning', 'subjects warning', 'credentials ok'],
    ...['stream fault', 'delivery warning', 'audience fault', 'events warning'],
  ])

  streams.all.clear()
  assert.equal(finding(await findingsAbout(t, managed), 'signals.stream').level, 'warning')
  streams.accepts = () => false
  assert.match(finding(await findingsAbout(t, managed), 'signals.credentials').what, /status 401/)
  transmitter.metadata = { ...metadata, issuer: 'https://other.example' }
  assert.match(finding(await findingsAbout(t, managed), 'signals.metadata').what, /its issuer is https:\/\/other/)
})

test('Doctor tries polls without taking an event, and needs no credentials for push delivery', async (t) => {
  const poll = `delivery: poll, poll_url: "${streams.pollUrl}", authorization: { env: SIGNALS_AUTHORIZATION }`
  assert.deepEqual(levels(await findingsAbout(t, poll)), ['metadata ok', 'keys ok', 'poll ok'])
  assert.deepEqual(streams.requests.at(-1)?.body, { maxEvents: 0, returnImmediately: true })
  streams.accepts = () => false
  assert.deepEqual(levels(await findingsAbout(t, poll)), ['metadata ok', 'keys ok', 'credentials fault'])

  assert.deepEqual(levels(await findingsAbout(t, '')), ['metadata ok', 'keys ok'])
})
