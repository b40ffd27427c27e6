// Writes what this version of the gateway stores, for the tests of later versions:
// .ci/node --import tsx test/upgrade/write-formats.ts > test/upgrade/fixtures/VERSION.json
import type { KeptKey } from '../../src/core/names.ts'
import { rememberEmailEnding } from '../../src/session/people/email-endings.ts'
import { sealRecord } from '../../src/session/record/sealed-record.ts'
import { confirmationMessage, NoticeMessages } from '../../src/session/store/redis/confirmations.ts'
import { beginTransaction, transactionToState } from '../../src/sign-in/transaction.ts'
import { audience, type Formats, gatewayParts, key, now, sampleRecord } from './formats.ts'

const { keyring, store, jobs, kept, signingKeys, stream, person, refused, bound, challenges } = gatewayParts()
const base64 = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? Buffer.alloc(0)).toString('base64')
const cookieOf = (setCookie: string) => setCookie.split(';')[0] ?? ''
const documents: Uint8Array[] = []
const { writeDocument } = store
store.writeDocument = async (name, document, ttl) => {
  documents.push(document.sealed)
  return writeDocument.call(store, name, document, ttl)
}
const keptKeys: KeptKey[] = []
const { begin } = store.kept
store.kept.begin = async (keptKey, max, ttl) => {
  keptKeys.push(keptKey)
  return begin.call(store.kept, keptKey, max, ttl)
}

await signingKeys.synchronize()
await stream.change(() => ({ stream_id: 's1', wanted: 'w', given: 'g', state: 'v1' }))
await rememberEmailEnding('jane@example.com', audience, 'signal', store)
const writer = await kept.begin(person.tagOf('jane'), 60_000)
if (typeof writer === 'string') throw new Error(writer)
await writer.append(Buffer.from('a=1&'))
await writer.append(Buffer.from('b=2'))
const form = { host: 'orders.example.com', method: 'POST', target: '/order', upstream: 'orders', fields: [] }
const complete = await writer.complete({ ...form, contentType: 'application/x-www-form-urlencoded' } as never)
if (typeof complete === 'string') throw new Error(complete)
const [keptKey = '' as KeptKey] = keptKeys
const head = await store.kept.read(keptKey)
const to = { return_to: '/orders', origin: 'https://orders.example.com', audience, begun_at_store: now }
const messages = new NoticeMessages('old')
const job = jobs.sealedFor(key, sampleRecord(1))

const formats: Formats = {
  session: base64(sealRecord(keyring, { key, audience }, sampleRecord(1)).sealed),
  compressedSession: base64(sealRecord(keyring, { key, audience }, sampleRecord(400)).sealed),
  logoutJob: base64(job instanceof Buffer ? job : undefined),
  keptHead: base64(head?.head),
  keptParts: ((await store.kept.take(keptKey)) ?? []).map(base64),
  keptKey,
  keptCookie: cookieOf(complete.setCookie),
  signingKeys: base64(documents[0]),
  eventStream: base64(documents[1]),
  emailEnding: base64(documents[2]),
  state: transactionToState(beginTransaction(to, now).transaction, keyring),
  personCookie: cookieOf(person.set('jane')),
  refusedCookie: cookieOf(refused.prove({ sub: 'jane', sid: 'one' }).setCookie),
  boundCookie: cookieOf(bound.set(key)),
  deviceChallenge: challenges.create(key, 'refresh'),
  deviceIdentifier: challenges.identifier(key),
  notices: {
    changed: messages.changed(key),
    ended: messages.ended([key], 'id1'),
    raised: messages.raised({ tag: 'tag' as never, at: now, ttl: 1_000, issued_at: now }),
    missed: messages.missed,
    confirmation: confirmationMessage('id1', 'host:1'),
  },
}
process.stdout.write(`${JSON.stringify(formats, null, 2)}\n`)
await store.close()
