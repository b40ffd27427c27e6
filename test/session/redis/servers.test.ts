import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { sidTag, subTag, tagOf } from '../../../src/session/record/record.ts'
import { freePort } from '../../support/free-port.ts'
import { inTime } from '../../support/in-time.ts'
import { replacePauses } from '../../support/pauses.ts'
import { startRedis } from '../../support/redis.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'
import { assertUnavailable, hastyMs, hearing, openAt, openUrl, refusedInTime, responds, tick } from '../redis-stores.ts'
import { created, keysOf, newKeptKey, newSession, order, times, until } from '../store-contract.ts'

const iss = 'https://id.example.com/'

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
  const { store } = openUrl(t, { url: new URL(`redis://127.0.0.1:${proxy.port}`) })
  await until(tick, async () => (await clientOf('commands')) !== undefined)
  const port = Number(/ addr=127\.0\.0\.1:(\d+)/.exec((await clientOf('commands')) ?? '')?.[1])

  proxy.freeze('responses', port)
  await until(tick, async () => (await clientOf('notices'))?.includes('cmd=ping') === true)
  proxy.thaw()

  await hearing(store)
})

test('a Redis that hangs costs each call no more than the timeout, and many calls nothing', async (t) => {
  const server = await startRedis(t)
  const { store, log } = await openAt(t, server, { timeoutMs: hastyMs })
  const session = await created(store, Date.now())
  server.freeze()

  await refusedInTime(store, hastyMs)
  // The connection was closed, so no further call waits.
  await until(tick, () => log.warnings().length > 0)
  await inTime(10 * hastyMs, async () => {
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
  replacePauses(t, { reconnectToStoreMs: 100 })
  const server = await startRedis(t)
  const { store, log, heard } = await openAt(t, server, { timeoutMs: hastyMs })
  await hearing(store)
  for (let round = 1; round <= 3; round++) {
    const underWay = times(50, () => store.create(newSession(Date.now())))
    await Promise.all([server.kill(), ...underWay.map((call) => call.catch((error) => assertUnavailable(error)))])
    await refusedInTime(store, hastyMs)
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
