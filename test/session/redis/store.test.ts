import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sha256 } from '../../../src/core/random.ts'
import { Keyring } from '../../../src/core/seal.ts'
import { newSessionId, sessionKey, sidTag, subTag, tagOf } from '../../../src/session/record/record.ts'
import { commandsDuring } from '../../support/redis.ts'
import { hearing, startSharedRedis, tick } from '../redis-stores.ts'
import { created, keysOf, newSession, order, times, until } from '../store-contract.ts'

const iss = 'https://id.example.com/'

const { server: shared, admin, openShared } = await startSharedRedis()

test('a repeated order ends sessions of version 0.1.0, which do not say when they began', async (t) => {
  const { store } = await openShared(t, { keyPrefix: 'earlier:' })
  const now = Date.now()
  const { key } = await created(store, now, { sid: 'one', begun_at: now + 60_000 })
  const [place = ''] = await admin.keys('earlier:*:s:*')
  assert.equal(await admin.hdel(place, 'begun_at'), 1)
  const later = await created(store, now, { sid: 'one', begun_at: now + 60_000 })

  assert.deepEqual(keysOf(await store.endSid(sidTag(iss, 'one'), order(now, { begun_until: now }))), [key])
  assert.notEqual(await store.read(later.key), undefined)
})

test('sessions that are asked for in the same turn are read in one round trip', async (t) => {
  const { store } = await openShared(t)
  const { key } = await created(store, Date.now())
  // The first read may have to give Redis the script.
  await store.read(key)

  const seen = await commandsDuring(shared, async () => {
    const found = await Promise.all(Array.from({ length: 50 }, () => store.read(key)))
    assert.ok(found.every((session) => session !== undefined))
  })

  const place = String(key.split(':')[1])
  const reads = seen.filter(([name = '', ...args]) => name.startsWith('eval') && args.join().includes(place))
  assert.equal(reads.length, 1)
})

test('Redis decides when a session expires, by its own clock', async (t) => {
  const hour = 3_600_000
  for (const skew of [-hour, hour]) {
    const clock = { now: () => Date.now() + skew }
    const { store, config } = await openShared(t, {}, clock)
    const session = await created(store, clock.now(), {
      idle_timeout: 60_000,
      absolute_expires_at: clock.now() + 90_000,
    })
    const place = `${config.keyPrefix}{${tagOf(session.key)}}:s:${session.key.split(':')[1]}`
    const index = `${config.keyPrefix}{${session.subTag}}:u`

    assert.ok(await within(59_000, 60_000, admin.pttl(place)))
    assert.ok(await within(89_000, 90_000, admin.pttl(index)))
    await store.touch(session.key, 1_000_000)
    assert.ok(await within(89_000, 90_000, admin.pttl(place)))
    await store.touch(session.key, 5_000)
    await store.replace(session.key, Buffer.from('rotated'), 1)
    assert.ok(await within(4_000, 5_000, admin.pttl(place)))
  }
})

test('an index lives as long as its last session, and expired sessions leave it', async (t) => {
  const { store, config } = await openShared(t)
  const facts = { sub: 'jane', sid: 'one' }
  await created(store, Date.now(), { ...facts, absolute_expires_at: Date.now() + 90_000 })
  await created(store, Date.now(), { ...facts, absolute_expires_at: Date.now() + 30 })
  const indexes = [`${config.keyPrefix}{${sidTag(iss, 'one')}}:i`, `${config.keyPrefix}{${subTag(iss, 'jane')}}:u`]

  for (const index of indexes) assert.ok(await within(80_000, 90_000, admin.pttl(index)))
  const begun = Date.now()
  await until(tick, () => Date.now() > begun + 40)
  await created(store, Date.now(), { ...facts, absolute_expires_at: Date.now() + 30_000 })

  for (const index of indexes) {
    assert.equal(await admin.zcard(index), 2)
    assert.ok(await within(80_000, 90_000, admin.pttl(index)))
  }
})

test('a session takes little memory in Redis beside its record', async (t) => {
  const { store, config } = await openShared(t)
  const session = await created(store, Date.now(), { sealed: Buffer.alloc(4_000), sid: 'one' })
  const [sid, sub] = [`${config.keyPrefix}{${sidTag(iss, 'one')}}`, `${config.keyPrefix}{${session.subTag}}`]

  const places = [`${sid}:s:${session.key.split(':')[1]}`, `${sid}:i`, `${sub}:u`]
  // All fields: a sample of five that has the record counts more than its bytes.
  const usages = places.map((place) => admin.memory('USAGE', place, 'SAMPLES', 0))
  const [record = NaN, ...indexes] = await Promise.all(usages)

  assert.ok(Number(record) < 4_000 + 1_000, `the session: ${record} bytes`)
  for (const index of indexes) assert.ok(Number(index) < 250, `an index: ${index} bytes`)
})

test('every key of a script lies in one slot of a Cluster', async (t) => {
  const { store } = await openShared(t)
  const seen = await commandsDuring(shared, async () => {
    const sessions = await Promise.all(
      times(4, (n) => created(store, Date.now(), { sub: 'jane', sid: `sid ${n % 2}` })),
    )
    await store.endOne((sessions[0] as { key: (typeof sessions)[0]['key'] }).key)
    await store.endSid(sidTag(iss, 'sid 1'), order(Date.now()))
    await store.endSub(subTag(iss, 'jane'), order(Date.now()))
  })

  let scripts = 0
  for (const [command, , numkeys, ...rest] of seen) {
    if (!/^eval/i.test(command ?? '')) continue
    scripts += 1
    const slots = new Set(rest.slice(0, Number(numkeys)).map((key) => /\{(.*?)\}/.exec(key)?.[1] ?? key))
    assert.equal(slots.size, 1, [...slots].join(' '))
  }
  assert.ok(scripts > 10)
})

test('Redis sees neither the cookie nor the content of a session', async (t) => {
  const { store } = await openShared(t)
  const keyring = new Keyring([Buffer.alloc(32, 7)])
  const secrets = ['jane@example.com', 'sub-of-jane', 'sid-of-jane', 'access-token-value', 'https://id.example.com']
  const id = newSessionId(iss, { sid: 'sid-of-jane', sub: 'sub-of-jane' })
  const key = sessionKey(id)
  const session = { key, subTag: subTag(iss, 'sub-of-jane'), sealed: keyring.seal(JSON.stringify(secrets), key) }
  const times = { idle_timeout: 60_000, absolute_expires_at: Date.now() + 60_000, begun_at: Date.now() }

  const seen = await commandsDuring(shared, async () => {
    await store.create({ ...session, ...times })
    await store.replace(key, keyring.seal(JSON.stringify(secrets), key), 1)
    await store.acquireLease(key, 'owner', 60_000)
    await store.takeOnce('sub-of-jane', 60_000)
    await store.endSid(sidTag(iss, 'another'), order(Date.now()))
  })

  const everything = [...(await dump()), ...seen.flat()].join('\n')
  assert.ok(everything.includes(sha256(id).slice(0, 32)))
  for (const secret of [id, id.slice(24), ...secrets]) assert.ok(!everything.includes(secret), secret)
})

test('a closed store rejects, and does not keep the process alive', async (t) => {
  const { store, log } = await openShared(t)
  await hearing(store)
  await store.close()

  assert.deepEqual(log.warnings(), [])
  assert.equal(store.receivesNotices(), false)
  await assert.rejects(store.read(newSession(Date.now()).key), { code: 'ERR_STORE_UNAVAILABLE' })
  await store.close()
})

async function within(least: number, most: number, value: Promise<number>): Promise<boolean> {
  const found = await value
  return found > least && found <= most ? true : assert.fail(`${found} is not in ${least}…${most}`)
}

/** All keys and values of the shared Redis. */
async function dump(): Promise<string[]> {
  const texts: string[] = []
  for (const key of await admin.keys('*')) {
    const kind = await admin.type(key)
    if (kind === 'string') texts.push(key, String(await admin.get(key)))
    else if (kind === 'hash') texts.push(key, JSON.stringify(await admin.hgetall(key)))
    else if (kind === 'zset') texts.push(key, ...(await admin.zrange(key, '0', '-1')))
    // It has expired meanwhile.
    else if (kind !== 'none') assert.fail(`a ${kind} at ${key}`)
  }
  return texts
}
