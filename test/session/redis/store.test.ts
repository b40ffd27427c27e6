import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test, type TestContext } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { Redis } from 'ioredis'
import type { RedisServerConfig } from '../../../src/config/model/session.ts'
import { type Clock, systemClock } from '../../../src/core/clock.ts'
import { randomToken, sha256 } from '../../../src/core/random.ts'
import { Keyring } from '../../../src/core/seal.ts'
import { newSessionId, sessionKey, sidTag, subTag, tagOf } from '../../../src/session/record/record.ts'
import { freePort } from '../../support/free-port.ts'
import { inTime } from '../../support/in-time.ts'
import { commandsDuring, type RedisServer, startRedis } from '../../support/redis.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'
import {
  responds,
  assertUnavailable,
  hearing,
  open,
  refusedInTime,
  settings,
  sizeOf,
  tick,
  unconfirmed,
} from '../redis-stores.ts'
import { created, keysOf, newKeptKey, newSession, order, storeContract, times, until } from '../store-contract.ts'

const iss = 'https://id.example.com/'
const { timeoutMs } = settings

/** A Redis for all tests that do not disturb it. */
const shared = await startRedis({ after })
const admin = new Redis(shared.port, '127.0.0.1')
after(() => admin.disconnect())

storeContract('redis', async (t) => {
  // A channel of its own: the notice of a tombstone of the test before may be on its way yet.
  const { store } = await openShared(t, { keyPrefix: `${randomToken(6)}:` })
  return { store, now: systemClock.now, tick, size: () => sizeOf(admin) }
})

test('sessions that are asked for in the same turn are read in one round trip', async (t) => {
  const { store } = await openShared(t)
  const { key } = await created(store, Date.now())
  const write = t.mock.method(Socket.prototype, '_write')

  const found = await Promise.all(Array.from({ length: 50 }, () => store.read(key)))

  assert.ok(found.every((session) => session !== undefined))
  const writes = write.mock.calls.filter(({ this: socket }) => (socket as Socket).remotePort === shared.port)
  assert.ok(writes.length < 10, `${writes.length} commands were written alone`)
})

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
  const { store, log } = await openShared(t)
  const others = await Promise.all(times(3, () => openAnother(t)))
  await hearing(store, ...others.map((other) => other.store))

  for (let round = 0; round < 100; round++) {
    const session = await created(store, Date.now(), { sid: `sid ${round}`, sub: `sub ${round}` })
    const sibling = await created(store, Date.now(), { sub: `sub ${round}` })
    const waitedInVain = unconfirmed(log)
    if (round % 3 === 0) await store.endOne(session.key)
    if (round % 3 === 1) await store.endSid(tagOf(session.key), order(Date.now()))
    if (round % 3 === 2) await store.endSub(session.subTag, order(Date.now()))

    // The machine stalled, which may happen now and then.
    if (unconfirmed(log) > waitedInVain) continue
    for (const other of others) {
      const dropped = other.notices.flatMap((notice) => (notice.kind === 'ended' ? notice.keys : []))
      assert.ok(dropped.includes(session.key), `round ${round}`)
      assert.equal(dropped.includes(sibling.key), round % 3 === 2)
    }
  }
  assert.ok(unconfirmed(log) < 5)
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
  const [record = NaN, ...indexes] = await Promise.all(places.map((place) => admin.memory('USAGE', place)))

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

test('thousands of sessions end in steps that do not block other commands', async (t) => {
  // A busy machine may take long for thousands of commands.
  const { store } = await openShared(t, { timeoutMs: 60_000 })
  const other = await openAnother(t)
  await hearing(store, other.store)
  const sessions = [
    ...(await Promise.all(times(1_500, () => created(store, Date.now(), { sub: 'jane' })))),
    ...(await Promise.all(times(1_500, () => created(store, Date.now(), { sub: 'jane', sid: 'one' })))),
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
  for (let round = 0; round < 300; round++) {
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

test('a full Redis rejects new sessions, but logouts succeed', async (t) => {
  const server = await startRedis(t)
  const { store } = await openAt(t, server)
  const direct = new Redis(server.port, '127.0.0.1')
  t.after(() => direct.disconnect())
  const one = await created(store, Date.now(), { sid: 'one' })
  const two = await created(store, Date.now(), { sub: 'two' })
  const three = await created(store, Date.now())
  await direct.config('SET', 'maxmemory', '1')

  await assert.rejects(store.create(newSession(Date.now())), { code: 'ERR_STORE_UNAVAILABLE' })
  await assert.rejects(store.replace(one.key, Buffer.from('rotated'), 1), { code: 'ERR_STORE_UNAVAILABLE' })
  assert.notEqual(await store.read(one.key), undefined)
  assert.equal(await store.touch(one.key, 60_000), true)
  assert.deepEqual(keysOf(await store.endSid(tagOf(one.key), order(Date.now()))), [one.key])
  assert.deepEqual(keysOf(await store.endSub(two.subTag, order(Date.now()))), [two.key])
  assert.deepEqual(keysOf(await store.endOne(three.key)), [three.key])
  assert.deepEqual(await store.endSid(sidTag(iss, 'nobody'), order(Date.now())), [])
})

test('a full Redis keeps no further request, but gives and forgets those that it has', async (t) => {
  const server = await startRedis(t)
  const { kept } = (await openAt(t, server)).store
  const direct = new Redis(server.port, '127.0.0.1')
  t.after(() => direct.disconnect())
  const [one, two] = [newKeptKey(), newKeptKey()]
  for (const key of [one, two]) {
    await kept.begin(key, 8, 60_000)
    await kept.append(key, Buffer.from('typed'), 60_000)
  }
  await kept.complete(one, Buffer.from('head'), 60_000)
  await direct.config('SET', 'maxmemory', '1')

  assert.equal(await kept.begin(newKeptKey(), 8, 60_000), 'full')
  assert.equal(await kept.append(two, Buffer.from('more'), 60_000), false)
  assert.equal(await kept.complete(two, Buffer.from('head'), 60_000), false)
  assert.equal(await kept.drop(two), true)
  assert.equal((await kept.take(one))?.length, 1)
  await kept.giveBack(one)
  assert.equal((await kept.take(one))?.length, 1)
  await kept.finish(one)
  assert.equal((await kept.read(one))?.state, 'sent')
})

test('when Redis hangs, notices stop to count within 2 s, and a "resumed" notice follows', async (t) => {
  const server = await startRedis(t)
  const { store, heard } = await openAt(t, server)
  await hearing(store)
  assert.deepEqual(heard, [{ kind: 'resumed', receivesNotices: false }])

  server.freeze()
  await inTime(2_000, () => until(tick, () => !store.receivesNotices()))
  await assert.rejects(store.ping(), { code: 'ERR_STORE_UNAVAILABLE' })

  server.resume()
  await hearing(store)
  assert.deepEqual(heard.slice(1), [{ kind: 'resumed', receivesNotices: false }])
})

test('notices count as soon as both connections are ready, before the next beat', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const server = await startRedis(t)
  const direct = new Redis(server.port, '127.0.0.1')
  t.after(() => direct.disconnect())
  const clientOf = async (purpose: string) =>
    String(await direct.client('LIST'))
      .split('\n')
      .find((line) => line.includes(`name=gatehouse-${purpose}`))
  const proxy = await startTcpProxy(t, server.port)
  proxy.freeze('responses')
  const { store } = openUrl(t, { url: new URL(`redis://127.0.0.1:${proxy.port}`), timeoutMs: 5_000 })
  await until(tick, async () => (await clientOf('commands')) !== undefined)
  const port = Number(/ addr=127\.0\.0\.1:(\d+)/.exec((await clientOf('commands')) ?? '')?.[1])

  proxy.freeze('responses', port)
  await until(tick, async () => (await clientOf('notices'))?.includes('cmd=ping') === true)
  proxy.thaw()

  await hearing(store)
})

test('a Redis that hangs costs each call no more than the timeout, and many calls nothing', async (t) => {
  const server = await startRedis(t)
  const { store, log } = await openAt(t, server)
  const session = await created(store, Date.now())
  server.freeze()

  await refusedInTime(store)
  // The connection was closed, so no further call waits.
  await until(tick, () => log.warnings().length > 0)
  await inTime(10 * timeoutMs, async () => {
    for (let n = 0; n < 100; n++) await assert.rejects(store.read(session.key), { code: 'ERR_STORE_UNAVAILABLE' })
  })

  server.resume()
  await until(tick, () => responds(store))
  assert.notEqual(await store.read(session.key), undefined)
})

test('Redis may be unavailable at the start', async (t) => {
  const port = await freePort()
  const { store, log } = openUrl(t, { url: new URL(`redis://127.0.0.1:${port}`) })
  await refusedInTime(store)
  await until(tick, () => log.lines.length > 0)
  await refusedInTime(store)
  assert.equal(store.receivesNotices(), false)

  await startRedis(t, { port })
  await until(tick, () => responds(store))
  await hearing(store)

  await created(store, Date.now())
  await until(tick, () => log.messages().length >= 2)
  assert.deepEqual(log.messages(), ['store.unavailable', 'store.available'])
  assert.equal(log.lines[0]?.fields?.store, `127.0.0.1:${port}`)
  assert.match(String(log.lines[0]?.fields?.reason), /ECONNREFUSED/)
})

test('while the connection is down, no call waits for its time limit', async (t) => {
  const port = await freePort()
  const { store, log } = openUrl(t, { url: new URL(`redis://127.0.0.1:${port}`), timeoutMs: 600_000 })

  await refusedInTime(store, 10_000)
  await refusedInTime(store, 10_000)
  await assert.rejects(store.ping(), /ECONNREFUSED/)
  assert.deepEqual(log.warnings(), ['store.unavailable'])

  await startRedis(t, { port })
  await until(tick, () => responds(store))
})

test('Redis may die and return', async (t) => {
  const server = await startRedis(t)
  const { store, log, heard } = await openAt(t, server)
  await hearing(store)
  for (let round = 1; round <= 3; round++) {
    const underWay = times(50, () => store.create(newSession(Date.now())))
    await Promise.all([server.kill(), ...underWay.map((call) => call.catch((error) => assertUnavailable(error)))])
    await refusedInTime(store)
    assert.equal(store.receivesNotices(), false)

    await server.restart()
    await until(tick, () => responds(store))
    const { key } = await created(store, Date.now())
    assert.notEqual(await store.read(key), undefined)
    await hearing(store)
    assert.ok(heard.splice(0).length > 0)
    await until(tick, () => log.messages().length >= 1 + 3 * round)
  }
  const round = ['store.unavailable', 'store.has_lost_sessions', 'store.available']
  assert.deepEqual(log.messages(), ['store.available', ...round, ...round, ...round])
})

test('the store leaves a primary that became a replica', async (t) => {
  const [primary, server] = [await startRedis(t), await startRedis(t)]
  const { store, heard } = await openAt(t, server)
  await hearing(store)
  const direct = new Redis(server.port, '127.0.0.1')
  t.after(() => direct.disconnect())
  await direct.replicaof('127.0.0.1', primary.port)

  // The connection may be lost at this moment. Then the next one meets the replica.
  await until(tick, () =>
    store.create(newSession(Date.now())).then(
      () => assert.fail('a replica has taken it'),
      (error: Error) => /READONLY/.test(error.message),
    ),
  )
  await until(tick, () => !store.receivesNotices())
  heard.length = 0

  await direct.replicaof('NO', 'ONE')
  await until(tick, () => store.create(newSession(Date.now())).then(Boolean, () => false))
  await hearing(store)
  assert.ok(heard.some(({ kind }) => kind === 'resumed'))
})

test('a busy Redis counts as unavailable', async (t) => {
  const server = await startRedis(t, { args: ['--busy-reply-threshold', '50'] })
  const { store } = await openAt(t, server)
  const direct = new Redis(server.port, '127.0.0.1')
  t.after(() => direct.disconnect())
  const busy = direct.eval('while true do end', 0).catch(() => {})

  await until(tick, () => store.read(newSession(Date.now()).key).then(() => false, assertUnavailable))

  const killer = new Redis(server.port, '127.0.0.1', { enableReadyCheck: false })
  t.after(() => killer.disconnect())
  await until(tick, () => killer.script('KILL').then(Boolean, () => false))
  await busy
  await until(tick, () => responds(store))
})

test('a rejected password is logged without the password', async (t) => {
  const server = await startRedis(t, { password: 'the-right-one' })
  const { store, log } = openUrl(t, { url: new URL(server.url), password: 'the-wrong-one' })
  await until(tick, () => log.lines.length > 0)
  const refusal = await store.read(newSession(Date.now()).key).catch((error: unknown) => error)
  const without = openUrl(t, { url: new URL(server.url) })
  await until(tick, () => without.log.lines.length > 0)

  assertUnavailable(refusal)
  assert.match(String(log.lines[0]?.fields?.reason), /WRONGPASS/)
  assert.match(String(without.log.lines[0]?.fields?.reason), /NOAUTH/)
  const told = JSON.stringify(log.lines) + (refusal as Error).message + JSON.stringify(refusal)
  assert.ok(!told.includes('the-wrong-one'))
  assert.ok((refusal as Error).message.includes(`127.0.0.1:${server.port}`))

  const right = openUrl(t, { url: new URL(server.url), password: 'the-right-one' })
  await right.store.ping()
  await created(right.store, Date.now())
})

test('the Redis user may be restricted to its own keys and channels, without dangerous commands', async (t) => {
  const rights = ['~gh:*', '&gh:*', '+@all', '-@dangerous', '+info']
  const args = ['--user', 'gatehouse', 'on', '>pass', ...rights]
  const server = await startRedis(t, { password: 'other', args })
  const given = { username: 'gatehouse', password: 'pass', keyPrefix: 'gh:' }
  const { store } = openUrl(t, { url: new URL(server.url), ...given })
  await hearing(store)

  const { key } = await created(store, Date.now(), { sub: 'jane', sid: 'one' })
  await store.replace(key, Buffer.from('rotated'), 1)
  await store.acquireLease(key, 'owner', 1_000)
  assert.deepEqual(keysOf(await store.endSub(subTag(iss, 'jane'), order(Date.now()))), [key])
})

test('a Redis user that may not subscribe is logged once, and no session is served from memory', async (t) => {
  const args = ['--user', 'gatehouse', 'on', '>pass', '~*', 'resetchannels', '+@all']
  const server = await startRedis(t, { password: 'other', args })
  const { store, log } = openUrl(t, { url: new URL(server.url), username: 'gatehouse', password: 'pass' })
  await store.ping()
  const { key } = await created(store, Date.now())

  await until(tick, () => log.lines.some(({ level }) => level === 'error'))
  assert.equal(store.receivesNotices(), false)
  // An ending without a notice is not carried out in part.
  await assert.rejects(store.endOne(key), { code: 'ERR_STORE_UNAVAILABLE' })
  assert.notEqual(await store.read(key), undefined)
})

test('an ending whose notice cannot be sent is rejected, and all processes drop their copies later', async (t) => {
  const rights = ['resetkeys', '~gh:*', '&gh:*', '+@all']
  const server = await startRedis(t, { args: ['--user', 'gatehouse', 'on', '>pass', ...rights] })
  const direct = new Redis(server.port, '127.0.0.1')
  t.after(() => direct.disconnect())
  const given = { url: new URL(server.url), keyPrefix: 'gh:' }
  const { store } = openUrl(t, { ...given, username: 'gatehouse', password: 'pass' })
  const other = openUrl(t, given)
  await hearing(store, other.store)
  // Sessions of several slots: after their scripts, one notice has the end of all of them.
  const one = await created(store, Date.now(), { sub: 'jane', sid: 'one' })
  const two = await created(store, Date.now(), { sub: 'jane', sid: 'two' })
  const token = order(Date.now())

  // All but the place where the processes meet.
  await direct.acl('SETUSER', 'gatehouse', 'resetkeys', `~gh:{${'?'.repeat(24)}}:*`)
  await assert.rejects(store.endSub(one.subTag, token), { code: 'ERR_STORE_UNAVAILABLE' })
  for (const { key } of [one, two]) assert.equal(await store.read(key), undefined)
  other.notices.length = 0
  await direct.acl('SETUSER', 'gatehouse', '~gh:*')

  await until(tick, () => other.notices.some(({ kind }) => kind === 'resumed'))
  other.notices.length = 0
  const ended = await store.endSub(one.subTag, token)
  assert.deepEqual(keysOf(ended).toSorted(), [one.key, two.key].toSorted())
  const noticed = other.notices.flatMap((notice) => (notice.kind === 'ended' ? [notice.keys.toSorted()] : []))
  assert.deepEqual(noticed.at(-1), [one.key, two.key].toSorted())
  assert.equal(await store.endSub(one.subTag, token), 'replayed')
})

test('a database that does not exist is not replaced by database 0', async (t) => {
  const server = await startRedis(t)
  const { store, log } = openUrl(t, { url: new URL(`${server.url}/99`) })
  await until(tick, () => log.lines.length > 0)

  assert.match(String(log.lines[0]?.fields?.reason), /DB index is out of range/)
  await assert.rejects(store.create(newSession(Date.now())), { code: 'ERR_STORE_UNAVAILABLE' })
  const { store: third } = openUrl(t, { url: new URL(`${server.url}/3`) })
  await third.ping()
  await created(third, Date.now())
  const direct = new Redis(server.port, '127.0.0.1', { db: 3 })
  t.after(() => direct.disconnect())
  assert.notEqual(await direct.dbsize(), 0)
  await direct.select(0)
  assert.equal(await direct.dbsize(), 0)
})

test('rediss: is TLS, and trusts the given authority only', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'gatehouse-tls-'))
  t.after(() => rmSync(dir, { recursive: true, force: true }))
  const [key, cert] = [join(dir, 'key.pem'), join(dir, 'cert.pem')]
  const request = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  const names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost']
  execFileSync('openssl', [...request, ...names, '-keyout', key, '-out', cert], { stdio: 'ignore' })
  const port = await freePort()
  const tls = ['--tls-port', String(port), '--tls-cert-file', cert, '--tls-key-file', key, '--tls-auth-clients', 'no']
  await startRedis(t, { args: tls })
  const url = new URL(`rediss://localhost:${port}`)

  const tlsOf = { ca: undefined, cert: undefined, key: undefined }
  const trusting = openUrl(t, { url, tls: { ...tlsOf, ca: readFileSync(cert, 'utf8') }, timeoutMs: 2_000 })
  await trusting.store.ping()
  await created(trusting.store, Date.now())
  await hearing(trusting.store)

  const wary = openUrl(t, { url, tls: tlsOf })
  await until(tick, () => wary.log.lines.length > 0)
  assert.match(String(wary.log.lines[0]?.fields?.reason), /self-signed|unable to verify/)
  const broken = openUrl(t, { url, tls: { ...tlsOf, ca: 'no certificate' } })
  await assert.rejects(broken.store.ping(), { code: 'ERR_STORE_UNAVAILABLE' })
})

test('a Redis that may evict keys is logged', async (t) => {
  for (const [maxmemory, policy, warnings] of [
    ['100mb', 'volatile-lru', 1],
    ['100mb', 'noeviction', 0],
    ['0', 'allkeys-lru', 0],
  ] as const) {
    const server = await startRedis(t, { args: ['--maxmemory', maxmemory, '--maxmemory-policy', policy] })
    const { store, log } = await openAt(t, server)
    await hearing(store)
    await store.ping()

    assert.equal(log.warnings().length, warnings, `${maxmemory} ${policy}`)
  }
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

  await until(tick, async () => (await sizeOf(admin)) === 0)
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

/** A store that may still be connecting, in the shared Redis unless another one is given. */
function openUrl(t: TestContext, given: Partial<RedisServerConfig> = {}, clock: Clock = systemClock) {
  return open(t, { ...settings, kind: 'redis', url: new URL(shared.url), ...given }, clock)
}

async function openAt(t: TestContext, server: RedisServer) {
  const opened = openUrl(t, { url: new URL(server.url) })
  await opened.store.ping()
  return opened
}

/** A store in the shared Redis, which is emptied for it, and may take longer on a busy machine. */
async function openShared(t: TestContext, given: Partial<RedisServerConfig> = {}, clock?: Clock, empty = true) {
  if (empty) await admin.flushall()
  const opened = openUrl(t, { timeoutMs: 5_000, ...given }, clock)
  await opened.store.ping()
  return opened
}

/** Another process's store, in the same Redis. */
function openAnother(t: TestContext) {
  return openShared(t, {}, systemClock, false)
}

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
