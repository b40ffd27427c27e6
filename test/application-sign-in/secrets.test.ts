import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApplicationSecrets, textOf } from '../../src/application-sign-in/secrets.ts'
import type { ApplicationSignInConfig } from '../../src/config/model/upstream.ts'
import { Keyring } from '../../src/core/seal.ts'
import type { StoredSession } from '../../src/session/record/record.ts'
import type { SealedDocument } from '../../src/session/store/store.ts'
import { upstreamConfig } from '../proxy/support.ts'

const key = Buffer.alloc(32, 7)
const signIn: ApplicationSignInConfig = {
  ...{ kind: 'form', page: '/login', action: '/login', values: [], token: undefined },
  ...{ username: [['preferred_username']], password: 'ask', rememberMs: 60_000, timeoutMs: 1_000 },
  ...{ asks: undefined, success: undefined, refusal: undefined },
}
const owner = { audience: 'audience', sub: 'jane' }
const upstream = upstreamConfig({ name: 'wiki' })

/** The documents of a store, as a thief could copy them. */
function documents() {
  const stored = new Map<string, SealedDocument>()
  return {
    stored,
    readDocument: async (name: string) => stored.get(name),
    writeDocument: async (name: string, { sealed, version }: SealedDocument) => {
      stored.set(name, { sealed, version: version + 1 })
      return true
    },
  }
}

const sessionOf = ({ audience, sub }: typeof owner) =>
  ({ audience, record: { sub, claims: { preferred_username: sub } } }) as unknown as StoredSession

for (const [what, change] of [
  ['another person', { owner: { ...owner, sub: 'noa' } }],
  ['another provider', { owner: { ...owner, audience: 'other' } }],
  ['another upstream', { upstream: { ...upstream, name: 'shop' } }],
  ['another host', { upstream: { ...upstream, externalUrl: new URL('https://other.example') } }],
  ['another address of the form', { signIn: { ...signIn, action: '/other' } }],
  ['another kind', { signIn: { ...signIn, kind: 'json' as const } }],
  ['another key', { key: Buffer.alloc(32, 8) }],
] as const)
  test(`A sealed password that a writer to the store copies is of no use for ${what}`, async () => {
    const store = documents()
    const secrets = new ApplicationSecrets({ store, keyring: new Keyring([key]) })
    await secrets.keep(owner, upstream, signIn, { password: 'correct horse' })
    const [sealed] = store.stored.values()
    const other = { owner, upstream, signIn, key, ...change }
    const thief = new ApplicationSecrets({ store, keyring: new Keyring([other.key]) })
    await secrets.keep(other.owner, other.upstream, other.signIn, { password: 'other' })
    for (const name of store.stored.keys()) store.stored.set(name, sealed as SealedDocument)

    assert.equal(await thief.credentials(sessionOf(other.owner), other.upstream, other.signIn), 'ask')
    assert.doesNotMatch(Buffer.from(sealed?.sealed ?? []).toString('latin1'), /correct|horse/)
  })

test('A password that was refused is not sent again, and another one is', async () => {
  const store = documents()
  const secrets = new ApplicationSecrets({ store, keyring: new Keyring([key]) })
  const byClaim = { ...signIn, password: [['secret']] }
  const person = (secret: string) =>
    ({
      audience: 'a',
      record: { sub: 'jane', claims: { preferred_username: 'jane', secret } },
    }) as unknown as StoredSession
  await secrets.noteRefused(upstream, { username: 'jane', password: 'one' })

  assert.deepEqual(await secrets.credentials(person('one'), upstream, byClaim), {
    why: 'the application has refused this password before',
  })
  assert.deepEqual(await secrets.credentials(person('two'), upstream, byClaim), { username: 'jane', password: 'two' })
  assert.doesNotMatch(JSON.stringify([...store.stored]), /one/)
})

test('A password that could not be kept or deleted is an error', async () => {
  const store = documents()
  const secrets = new ApplicationSecrets({ store, keyring: new Keyring([key]) })
  await secrets.keep(owner, upstream, signIn, { password: 'x' })

  // Other processes write first, each time.
  store.writeDocument = async () => false

  const refused = { username: 'jane', password: 'x' }
  for (const write of [
    () => secrets.keep(owner, upstream, signIn, { password: 'y' }),
    () => secrets.drop(owner, upstream),
    () => secrets.noteRefused(upstream, refused),
  ])
    await assert.rejects(write, { code: 'ERR_STORE_UNAVAILABLE' })
})

for (const [claims, text] of [
  [{ a: 'x', b: 7 }, 'x\\7'],
  [{ a: 'x' }, undefined],
  [{ a: '', b: 7 }, undefined],
  [{ a: ['x'], b: 7 }, undefined],
  [{ a: true, b: 7 }, undefined],
] as const)
  test(`A text without one of its claims is missing: ${JSON.stringify(claims)}`, () =>
    assert.equal(textOf([['a'], '\\', ['b']], claims), text))
