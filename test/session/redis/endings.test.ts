import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { randomToken } from '../../../src/core/random.ts'
import { sidTag, subTag, tagOf } from '../../../src/session/record/record.ts'
import { inTime } from '../../support/in-time.ts'
import { commandsDuring } from '../../support/redis.ts'
import { searchFor } from '../../support/searches.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'
import { assertDropsElsewhere, hearing, openUrl, responds, sizeOf, startSharedRedis, tick } from '../redis-stores.ts'
import { created, keysOf, newSession, order, times, until } from '../store-contract.ts'

const iss = 'https://id.example.com/'

const { server: shared, admin, openShared, openAnother } = await startSharedRedis()

test('a notice of an ending or a change reaches the other processes', async (t) => {
  const [{ store }, other] = [await openShared(t), await openAnother(t)]
  const [one, two, three] = [
    await created(store, Date.now()),
    await created(store, Date.now(), { sid: 'two' }),
    await created(store, Date.now(), { sub: 'three' }),
  ]
  await hearing(store, other.store)
  other.notices.length = 0

  await store.replace(one.key, Buffer.from('rotated'), 1)
  await store.replace(one.key, Buffer.from('rotated'), 1)
  await store.endOne(one.key)
  await store.endSid(tagOf(two.key), order(Date.now()))
  await store.endSub(three.subTag, order(Date.now()))

  assert.equal(new Set(other.notices.map((notice) => JSON.stringify(notice))).size, 6)
  const orders = other.notices.flatMap((notice) => (notice.kind === 'logout_order' ? notice.tombstone.tag : []))
  assert.deepEqual(new Set(orders), new Set([tagOf(two.key), three.subTag]))
  for (const notice of [
    { kind: 'changed', key: one.key },
    { kind: 'ended', keys: [one.key] },
    { kind: 'ended', keys: [two.key] },
    { kind: 'ended', keys: [three.key] },
  ])
    assert.ok(other.notices.some((heard) => isDeepStrictEqual(heard, notice)))
})

test('when an ending resolves, every other process has dropped the session', async (t) => {
  const one = await openShared(t)
  await assertDropsElsewhere(one, await Promise.all(times(3, () => openAnother(t))), searchFor(100, 30))
})

test('an ending takes two scripts, or one for one session, and notifies each process once', async (t) => {
  const { store } = await openShared(t)
  const other = await openAnother(t)
  await hearing(store, other.store)
  const [one, two] = [await created(store, Date.now()), await created(store, Date.now(), { sid: 'two' })]
  const scriptsOf = async ({ key }: typeof one, end: () => Promise<unknown>) => {
    const commands = await commandsDuring(shared, end)
    return commands.filter(([name = '', ...args]) => name.startsWith('eval') && args.join().includes(tagOf(key)))
  }

  const sid = await scriptsOf(one, () => store.endSid(tagOf(one.key), order(Date.now())))
  const single = await scriptsOf(two, () => store.endOne(two.key))

  assert.equal(sid.length, 2)
  assert.equal(single.length, 1)
  for (const { key } of [one, two]) {
    const ended = other.notices.filter((notice) => notice.kind === 'ended' && notice.keys.includes(key))
    assert.equal(ended.length, 1)
  }
})

test('after a lost reply, the repeated Logout Token ends nothing, but waits until the others have dropped the session', async (t) => {
  let isLosing = false
  const proxy = await startTcpProxy(t, shared.port, (bytes) => {
    if (isLosing && bytes.includes('"named":true')) proxy.freeze('responses')
  })
  const keyPrefix = `${randomToken(6)}:`
  const { store } = openUrl(t, { url: new URL(`redis://127.0.0.1:${proxy.port}`), keyPrefix })
  const other = await openShared(t, { keyPrefix })
  await hearing(store, other.store)
  const { key } = await created(store, Date.now())
  const token = order(Date.now())
  const noticed = () => other.notices.filter((notice) => notice.kind === 'ended' && notice.keys.includes(key)).length

  const ports = proxy.ports()

  isLosing = true
  await assert.rejects(store.endSid(tagOf(key), token), { code: 'ERR_STORE_UNAVAILABLE' })
  await until(tick, () => noticed() === 1 && !proxy.ports().some((port) => ports.includes(port)))
  isLosing = false
  proxy.thaw()
  await until(tick, () => responds(store))

  assert.equal(await store.endSid(tagOf(key), token), 'replayed')
  assert.equal(noticed(), 2)
})

test('an ending waits a quarter of a second at most for a process that hangs or fails', async (t) => {
  const { store, log } = await openShared(t)
  const other = await openAnother(t)
  await hearing(store, other.store)
  other.store.onNotice(() => assert.fail('cannot drop anything'))
  const { key } = await created(store, Date.now())

  assert.equal((await inTime(1_000, () => store.endOne(key))).length, 1)

  assert.deepEqual(log.warnings(), ['store.endings_not_confirmed'])
})

test('an unknown notice makes a process drop all its copies', async (t) => {
  const { store, notices, config, log } = await openShared(t)
  await hearing(store)
  notices.length = 0
  await admin.publish(`${config.keyPrefix}notices`, '{"from":"x","kind":"ended","keys":[]}')
  await until(tick, () => notices.length > 0)
  assert.deepEqual([notices, log.warnings()], [[{ kind: 'ended', keys: [] }], []])

  for (const text of [
    '',
    '{"from":"x","kind":"renamed"}',
    '{"from":"x","kind":"renamed"}',
    '{"from":"x","kind":"ended","keys":"?"}',
    'null',
    '[]',
  ]) {
    notices.length = 0
    await admin.publish(`${config.keyPrefix}notices`, text)
    await until(tick, () => notices.length > 0)
    assert.deepEqual(notices, [{ kind: 'resumed' }])
  }
  assert.deepEqual(log.warnings(), ['store.newer_format'], 'once, not for each notice')
})

test('a logout of a sub that failed half-way ends the other sessions when it is repeated', async (t) => {
  const { store, config } = await openShared(t)
  const sessions = await Promise.all(times(3, (n) => created(store, Date.now(), { sub: 'jane', sid: `sid ${n}` })))
  const [broken] = sessions as [(typeof sessions)[0]]
  const token = order(Date.now())
  // One session's slot refuses: a string stands where its index should be.
  const index = `${config.keyPrefix}{${tagOf(broken.key)}}:i`
  await admin.rename(index, 'aside')
  await admin.set(index, 'broken')
  await assert.rejects(store.endSub(subTag(iss, 'jane'), token), { code: 'ERR_STORE_UNAVAILABLE' })
  assert.notEqual(await store.read(broken.key), undefined)
  await admin.rename('aside', index)

  const ended = keysOf(await store.endSub(subTag(iss, 'jane'), token))
  assert.deepEqual(
    ended,
    sessions.map(({ key }) => key).toSorted(),
    'those that ended at the first attempt are told too',
  )

  for (const { key } of sessions) assert.equal(await store.read(key), undefined)
  assert.equal(await store.endSub(subTag(iss, 'jane'), token), 'replayed')
})

test('more sessions than a command takes end in steps that do not block other commands', async (t) => {
  // A busy machine may take long for thousands of commands.
  const { store } = await openShared(t, { timeoutMs: 60_000 })
  const other = await openAnother(t)
  await hearing(store, other.store)
  const sessions = [
    ...(await Promise.all(times(searchFor(1_500), () => created(store, Date.now(), { sub: 'jane' })))),
    ...(await Promise.all(
      times(searchFor(1_500, 1_050), () => created(store, Date.now(), { sub: 'jane', sid: 'one' })),
    )),
  ]
  const joe = await created(store, Date.now(), { sub: 'joe', sid: 'one' })

  const seen = await commandsDuring(shared, async () => {
    const ended = await store.endSub(subTag(iss, 'jane'), order(Date.now()))
    assert.deepEqual(keysOf(ended), sessions.map(({ key }) => key).toSorted())
  })

  const longest = Math.max(...seen.map((command) => command.length))
  assert.ok(longest < 1_000, `a command has ${longest} parts`)
  const dropped = () => new Set(other.notices.flatMap((notice) => (notice.kind === 'ended' ? notice.keys : [])))
  await until(tick, () => {
    const keys = dropped()
    return sessions.every(({ key }) => keys.has(key))
  })
  assert.notEqual(await store.read(joe.key), undefined)
  assert.deepEqual(keysOf(await store.endSid(sidTag(iss, 'one'), order(Date.now()))), [joe.key])
})

test('a session is rejected or ended when another process ends its sub during the creation', async (t) => {
  const [{ store }, { store: another }] = [await openShared(t), await openAnother(t)]
  const seen = new Set<string>()
  for (let round = 0; round < searchFor(300, 96); round++) {
    const session = newSession(Date.now(), { begun_at: Date.now() })
    const late = async () => {
      for (let turn = 0; turn < round % 12; turn++) await new Promise((resolve) => setImmediate(resolve))
      return another.endSub(session.subTag, order(Date.now()))
    }
    const [outcome, ended] = await Promise.all([store.create(session), late()])

    assert.equal(await store.read(session.key), undefined, `round ${round}`)
    assert.deepEqual(keysOf(ended), outcome === 'created' ? [session.key] : [], `round ${round}`)
    seen.add(outcome)
  }
  assert.equal(seen.size, 2, 'both ways were tried')
})

test('a rejected session leaves no entry in an index', async (t) => {
  const { store } = await openShared(t)
  const at = Date.now()
  await store.endSid(sidTag(iss, 'one'), order(at))

  assert.equal(await store.create(newSession(at, { sid: 'one', begun_at: at })), 'ended')

  // Records, and the indexes by sid and by sub. The trial of a connection may still be under way.
  const kept = (await admin.keys('*')).filter((key) => /:s:|:[iu]$/.test(key) && !key.includes(':trial:'))
  assert.deepEqual(kept, [])
})

test('repeated endings leave nothing in Redis', async (t) => {
  const { store, config } = await openShared(t)
  const other = await openAnother(t)
  await hearing(store, other.store)
  const begun = Date.now()
  const short = { idle_timeout: 3_000, absolute_expires_at: begun + 3_000 }
  const [one, two, three] = [
    await created(store, begun, short),
    await created(store, begun, { ...short, sid: 'two' }),
    await created(store, begun, { ...short, sub: 'three' }),
  ]
  const ttls = { jti_ttl: 3_000, ttl: 3_000 }
  await store.endOne(one.key)
  await store.endSid(tagOf(two.key), order(begun, ttls))
  await store.endSub(three.subTag, order(begun, ttls))
  other.notices.length = 0

  // Anything may have been lost.
  await admin.publish(`${config.keyPrefix}notices`, '')
  const ended = () => new Set(other.notices.flatMap((notice) => (notice.kind === 'ended' ? notice.keys : [])))
  await until(tick, () => [one, two, three].every(({ key }) => ended().has(key)))

  await until(tick, async () => (await sizeOf(admin, { config })) === 0)
})
