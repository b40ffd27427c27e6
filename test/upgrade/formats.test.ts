import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { emailEndedSince } from '../../src/session/people/email-endings.ts'
import { openRecord } from '../../src/session/record/sealed-record.ts'
import { confirmationIn, parseMessage } from '../../src/session/store/redis/confirmations.ts'
import { transactionFromState } from '../../src/sign-in/transaction.ts'
import { audience, type Formats, gatewayParts, key, now, sampleRecord } from './formats.ts'

const folder = new URL('fixtures/', import.meta.url)
const bytes = (text: string) => Buffer.from(text, 'base64')
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))
const signingKeysName = `gatehouse signing keys for ${audience}`
const streamName = `gatehouse event stream for ${audience}`

for (const name of readdirSync(folder)) {
  const formats = JSON.parse(readFileSync(new URL(name, folder), 'utf8')) as Formats

  test(`${name}: sessions and logout jobs are read with all members`, () => {
    const { keyring, jobs, newer } = gatewayParts()
    for (const [sealed, groups] of [
      [formats.session, 1],
      [formats.compressedSession, 400],
    ] as const) {
      const opened = openRecord(keyring, { key, audiences: [audience] }, bytes(sealed))
      assert.ok(typeof opened === 'object')
      assert.deepEqual(plain(opened.record), plain(sampleRecord(groups)))
    }
    const job = jobs.open(key, bytes(formats.logoutJob))
    assert.ok(typeof job === 'object')
    assert.deepEqual(job.cookies, sampleRecord(1).cookies)
    assert.deepEqual(newer, [])
  })

  test(`${name}: a kept form is found by its cookie, with its content`, async () => {
    const { kept, store } = gatewayParts()
    await store.kept.begin(formats.keptKey, 8, 60_000)
    for (const part of formats.keptParts) await store.kept.append(formats.keptKey, bytes(part), 60_000)
    await store.kept.complete(formats.keptKey, bytes(formats.keptHead), 60_000)

    const [cookieName = ''] = formats.keptCookie.split('=')
    const found = (await kept.find(cookieName.slice(-8), formats.keptCookie)) ?? assert.fail()

    assert.equal(found.request.target, '/order')
    assert.equal(Buffer.concat((await kept.take(found)) ?? []).toString(), 'a=1&b=2')
  })

  test(`${name}: documents in the store are used as they are`, async () => {
    const { store, signingKeys, stream } = gatewayParts()
    await store.writeDocument(signingKeysName, { sealed: bytes(formats.signingKeys), version: 0 }, 1_000)
    await store.writeDocument(streamName, { sealed: bytes(formats.eventStream), version: 0 }, 1_000)
    await signingKeys.synchronize()

    assert.equal((await signingKeys.published()).length, 1)
    assert.deepEqual((await store.readDocument(signingKeysName))?.version, 1, 'no key was added')
    assert.equal((await stream.read())?.stream_id, 's1')
    store.readDocument = async () => ({ sealed: bytes(formats.emailEnding), version: 1 })
    assert.equal(await emailEndedSince('jane@example.com', audience, 0, store), 'signal')
    assert.equal(await emailEndedSince('jane@example.com', audience, Number.MAX_SAFE_INTEGER, store), undefined)
  })

  test(`${name}: what browsers hold is accepted`, () => {
    const { keyring, person, refused, bound, challenges } = gatewayParts()
    assert.equal(transactionFromState(formats.state, keyring)?.return_to, '/orders')
    assert.equal(person.read(formats.personCookie), person.tagOf('jane'))
    assert.equal(refused.read(formats.refusedCookie)?.sid, 'one')
    const device = { ...(sampleRecord(1).device ?? assert.fail()), bound_at: 0 }
    assert.equal(bound.faultOf(key, device, formats.boundCookie), undefined)
    assert.equal(challenges.sessionOf(formats.deviceChallenge, 'refresh'), key)
    assert.equal(challenges.sessionWith(formats.deviceIdentifier), key)
  })

  test(`${name}: notices between processes are understood`, () => {
    const { changed, ended, raised, missed, confirmation } = formats.notices
    assert.deepEqual(parseMessage(changed)?.notice, { kind: 'changed', key })
    const { id, wantsName, notice } = parseMessage(ended) ?? assert.fail()
    assert.deepEqual([id, wantsName, notice], ['id1', true, { kind: 'ended', keys: [key] }])
    assert.equal(parseMessage(raised)?.tombstone?.at, now)
    assert.equal(parseMessage(missed)?.notice, undefined, 'all copies are dropped')
    assert.deepEqual(confirmationIn(confirmation), ['id1', 'host:1'])
  })
}
