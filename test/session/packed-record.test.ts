import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { inflateRawSync } from 'node:zlib'
import { Redis } from 'ioredis'
import type { SessionKey } from '../../src/core/names.ts'
import { Keyring } from '../../src/core/seal.ts'
import type { SessionRecord } from '../../src/session/record/record.ts'
import { openRecord, packRecord, type UnpackedRecord, unpackRecord } from '../../src/session/record/sealed-record.ts'
import { startRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { audience, replica } from './replica.ts'

const shared = await startRedis({ after })
const admin = new Redis(shared.port, '127.0.0.1')
after(() => admin.disconnect())

const iss = 'https://id.example.com/realms/people'
const now = 1_767_225_600

function jwt(payload: object, signatureBytes = 256): string {
  const header = { alg: 'RS256', typ: 'JWT', kid: randomBytes(32).toString('base64url') }
  const encoded = [header, payload].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
  return [...encoded, randomBytes(signatureBytes).toString('base64url')].join('.')
}

/** What Keycloak issues, with random identifiers and signatures: 3.7 KB of tokens and claims. */
function record(): Omit<SessionRecord, 'created_at' | 'absolute_expires_at'> {
  const [sub, sid] = [randomUUID(), randomUUID()]
  const person = {
    ...{ sub, email: 'jane.doe@example.com', email_verified: true, name: 'Jane Doe', preferred_username: 'jdoe' },
    ...{ given_name: 'Jane', family_name: 'Doe', locale: 'en', groups: ['accounting', 'staff'], updated_at: now },
  }
  const common = { exp: now + 300, iat: now, jti: randomUUID(), iss, sub, sid, azp: 'orders', session_state: sid }
  const roles = { realm_access: { roles: ['offline_access', 'uma_authorization', 'default-roles-people'] } }
  const tokens = {
    access_token: jwt({ ...common, ...roles, typ: 'Bearer', scope: 'openid profile email', aud: 'account', ...person }),
    refresh_token: jwt({ ...common, typ: 'Refresh', aud: iss, scope: 'openid profile email' }, 64),
    id_token: jwt({
      ...common,
      typ: 'ID',
      aud: 'orders',
      nonce: randomUUID(),
      at_hash: randomBytes(16).toString('base64url'),
      ...person,
    }),
    ...{ obtained_at: now * 1000, access_token_expires_at: (now + 300) * 1000 },
  }
  return { iss, sub, sid, origin: 'https://orders.example.com', tokens, claims: person, userinfo_read_at: now * 1000 }
}

function readable(bytes: Buffer, onTokens?: (more: number) => void): UnpackedRecord {
  const read = unpackRecord(bytes, onTokens)
  return typeof read === 'number' ? assert.fail(`the format ${read} is unknown`) : read
}

test('a session with three JWTs and ten claims takes at most 4 KiB in Redis', async (t) => {
  const { sessions, store } = replica(t, shared.port)
  await until('the store answers', () =>
    store.ping().then(
      () => true,
      () => false,
    ),
  )
  await admin.flushall()
  const given = record()
  const plain = JSON.stringify(given.tokens).length + JSON.stringify(given.claims).length
  assert.ok(plain > 3_600, `${plain} bytes`)
  const count = 200
  const keysWithout = new Set(await admin.keys('*'))

  const { earliest } = await store.time()
  for (let n = 0; n < count; n += 1) await sessions.create(audience, record(), earliest)

  const keys = (await admin.keys('*')).filter((key) => !keysWithout.has(key))
  const sizes = await Promise.all(keys.map((key) => admin.memory('USAGE', key) as Promise<number>))
  const each = sizes.reduce((sum, size) => sum + size, 0) / count
  t.diagnostic(`${plain} bytes of tokens and claims take ${each} bytes`)
  assert.ok(each <= 4096, `${each} bytes`)
})

/** So many that the claims are compressed too. */
const manyGroups = Array.from({ length: 200 }, (_, n) => `group-${n}`)

for (const [what, tokens] of Object.entries({
  'opaque tokens': { access_token: 'a', refresh_token: 'a.b', id_token: 'i' },
  'a token that is not canonical base64url': { access_token: 'e30.e31.AB', id_token: 'e30=.e30.' },
  'parts that are not text': { access_token: 'gIGC.____.__8', refresh_token: '..', id_token: 'Cg.CgoK.Cg' },
  'a signature that is too long to be set apart': { access_token: jwt({}, 20_000), id_token: jwt({}) },
  'text of many lines': { access_token: 'a\nb\u2028\n', id_token: jwt({ text: 'a\nb' }) },
  'half of a surrogate pair': { access_token: 'a\ud800', id_token: jwt({}) },
  'no refresh token': { access_token: jwt({}), id_token: jwt({}) },
}))
  test(`a record is unchanged after packing and unpacking: ${what}`, () => {
    const given = { ...record(), created_at: 1, absolute_expires_at: 2 }
    const changed: SessionRecord = { ...given, tokens: { obtained_at: 1, ...tokens } }

    for (const whole of [changed, { ...changed, claims: { ...changed.claims, groups: manyGroups } }]) {
      const unpacked = readable(packRecord(whole).bytes).record
      assert.deepEqual(JSON.parse(JSON.stringify(unpacked)), whole)
      for (const name of ['access_token', 'refresh_token', 'id_token', 'obtained_at'] as const)
        assert.equal(unpacked.tokens[name], whole.tokens[name])
      assert.deepEqual(JSON.parse(JSON.stringify(readable(packRecord(unpacked).bytes).record)), whole)
    }
  })

test('Earlier versions read the tokens of a record whose tokens are not compressed', () => {
  const given = { ...record(), created_at: 1, absolute_expires_at: 2 }
  const id_token = jwt({ iss, sub: given.sub })
  const { bytes } = packRecord({ ...given, tokens: { obtained_at: 1, access_token: 'opaque', id_token } })

  const jsonEnd = 5 + bytes.readUInt16BE(1) + bytes.readUInt16BE(3)
  const texts = inflateRawSync(bytes.subarray(jsonEnd), { windowBits: 13 }).toString()

  const [header, payload] = id_token.split('.').map((part) => Buffer.from(part, 'base64url').toString())
  assert.equal(texts, `opaque${header}${payload}`)
  assert.ok(bytes.includes(texts))
})

test('a record of an earlier version opens, and one of a later version does not', () => {
  const keyring = new Keyring([Buffer.alloc(32, 1)])
  const place = { key: 'tag:hash' as SessionKey, audiences: ['another', 'audience'] }
  const given = { ...record(), created_at: 1, absolute_expires_at: 2 }
  const sealed = (v: number) =>
    keyring.seal(JSON.stringify({ v, ...given }), `gatehouse session ${place.key} for audience`)

  const opened = openRecord(keyring, place, sealed(1))
  assert.deepEqual(typeof opened === 'object' && opened.record, given)
  assert.equal(openRecord(keyring, place, sealed(9)), 'newer')
})

// The near-cache bounds the sum of these sizes. The objects of a list of short texts take several
// times the memory of its JSON.
test('the size of a session in memory counts its claims four times, and its tokens as they are', () => {
  const groups = Array.from({ length: 200 }, (_, n) => `team-${n}`)
  const { claims, ...rest } = { ...record(), created_at: now, absolute_expires_at: now }
  const few = packRecord({ ...rest, claims })
  const many = packRecord({ ...rest, claims: { ...claims, groups } })
  const added = JSON.stringify(groups).length - JSON.stringify(claims['groups']).length
  const { access_token, refresh_token = '', id_token } = rest.tokens
  const tokenBytes = access_token.length + refresh_token.length + id_token.length

  assert.equal(many.unpackedBytes - few.unpackedBytes, 4 * added)
  assert.ok(few.unpackedBytes >= tokenBytes + 4 * JSON.stringify(claims).length)
  for (const { bytes, unpackedBytes } of [few, many]) {
    const grown: number[] = []
    const read = readable(bytes, (more) => grown.push(more))
    assert.equal(read.unpackedBytes - bytes.length, unpackedBytes - tokenBytes, 'read from the store, they are packed')
    assert.deepEqual(grown, [])
    assert.equal(read.record.tokens.access_token, access_token)
    assert.equal(read.record.tokens.id_token, id_token)
    assert.deepEqual(grown, [tokenBytes], 'once they are used, they are in memory twice')
  }
})
