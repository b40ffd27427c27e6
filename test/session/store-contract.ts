import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test, type TestContext } from 'node:test'
import type { KeptKey, SessionKey } from '../../src/core/names.ts'
import { randomToken } from '../../src/core/random.ts'
import { newSessionId, sessionKey, sidTag, subTag, tagOf } from '../../src/session/record/record.ts'
import type { KeptHead, KeptStore, LogoutOrder, NewSession, SessionStore } from '../../src/session/store/store.ts'
import { searchFor } from '../support/searches.ts'

/** A store, and a time that can be waited for: a movable clock, or the real one. */
export interface OpenedStore {
  readonly store: SessionStore
  now(): number
  /** Lets a little time pass, 10 or 20 ms. */
  tick(): Promise<void>
  /** How many entries of any kind the store holds. */
  size(): Promise<number>
}

const iss = 'https://id.example.com/'

const strangeSids = [
  'a b',
  '{curly}',
  '}{',
  '*',
  '?[a-z]',
  'täg\u0000\r\n',
  '日本',
  "'; return 1 --",
  ':s:',
  'x'.repeat(5_000),
  '../..',
  '%00',
  '"',
]

type Story = (opened: OpenedStore) => Promise<void>

/** What every session store does. `open` gives an empty store of its own to each test. */
export function storeContract(name: string, open: (t: TestContext) => Promise<OpenedStore>): void {
  const it = (what: string, story: Story) => void test(`${name}: ${what}`, async (t) => story(await open(t)))
  const waiting: [string, Story][] = []
  /** A test that waits until something has expired. Several of them wait at once. */
  const itWaits = (what: string, story: Story) => void waiting.push([what, story])

  it('reads back what was created', async ({ store, now }) => {
    const session = newSession(now())
    assert.equal(await store.create(session), 'created')

    const read = await store.read(session.key)

    assert.deepEqual(Buffer.from(read?.sealed ?? []), Buffer.from(session.sealed))
    assert.equal(read?.version, 1)
    assert.equal(await store.read(newSession(now()).key), undefined)
  })

  it('keeps every byte', async ({ store, now }) => {
    const sealed = Uint8Array.from({ length: 512 }, (_, n) => n % 256)
    const session = newSession(now(), { sealed: sealed.subarray(1, 400) })
    await store.create(session)

    assert.deepEqual([...((await store.read(session.key))?.sealed ?? [])], [...sealed.subarray(1, 400)])
    assert.deepEqual([...((await store.endOne(session.key))[0]?.sealed ?? [])], [...sealed.subarray(1, 400)])
  })

  it('replaces a version once', async ({ store, now }) => {
    const { key } = await created(store, now())

    assert.equal(await store.replace(key, Buffer.from('second'), 1), 'replaced')
    assert.equal(await store.replace(key, Buffer.from('late'), 1), 'conflict')
    assert.equal(await store.replace(key, Buffer.from('third'), 2), 'replaced')

    const read = await store.read(key)
    assert.equal(Buffer.from(read?.sealed ?? []).toString(), 'third')
    assert.equal(read?.version, 3)
  })

  it('lets one of many concurrent writers store a document', async ({ store }) => {
    assert.equal(await store.readDocument('keys'), undefined)
    const write = (text: string, version: number) =>
      store.writeDocument('keys', { sealed: Buffer.from(text), version }, 60_000)

    const first = await Promise.all(times(20, (n) => write(`writer ${n}`, 0)))
    const winner = first.indexOf(true)
    const stored = await store.readDocument('keys')
    assert.equal(first.filter(Boolean).length, 1)
    assert.equal(Buffer.from(stored?.sealed ?? []).toString(), `writer ${winner}`)

    assert.deepEqual(await Promise.all(times(3, (n) => write(`second ${n}`, stored?.version ?? 0))), [
      true,
      false,
      false,
    ])
    assert.equal(await write('late', 0), false)
    assert.equal(Buffer.from((await store.readDocument('keys'))?.sealed ?? []).toString(), 'second 0')
    assert.equal(await store.readDocument('others'), undefined)
  })

  itWaits('forgets a document after its time', async ({ store, tick }) => {
    assert.equal(await store.writeDocument('keys', { sealed: Buffer.from('brief'), version: 0 }, 1), true)
    while ((await store.readDocument('keys')) !== undefined) await tick()

    assert.equal(await store.writeDocument('keys', { sealed: Buffer.from('next'), version: 0 }, 60_000), true)
  })

  it('lets one of many concurrent writers win', async ({ store, now }) => {
    const { key } = await created(store, now())

    const outcomes = await Promise.all(times(20, (n) => store.replace(key, Buffer.from(`writer ${n}`), 1)))

    assert.equal(outcomes.filter((outcome) => outcome === 'replaced').length, 1)
    const winner = outcomes.indexOf('replaced')
    assert.equal(Buffer.from((await store.read(key))?.sealed ?? []).toString(), `writer ${winner}`)
  })

  it('never brings an ended session back by writing', async ({ store, now }) => {
    const { key } = await created(store, now())
    await store.endOne(key)

    assert.equal(await store.replace(key, Buffer.from('late'), 1), 'gone')
    assert.equal(await store.touch(key, 60_000), false)
    assert.equal(await store.read(key), undefined)
  })

  it('says how long a session lives without a touch, and asking is no touch', async ({ store, now }) => {
    const { key } = await created(store, now(), { idle_timeout: 60_000 })
    const expiresIn = async () => (await store.expiresIn(key)) ?? assert.fail('gone')

    const first = await expiresIn()
    const second = await expiresIn()

    assert.ok(first > 1_000 && first <= 60_000 && second <= first, `${first}, then ${second}`)
    const read = (await store.read(key))?.expiresIn ?? 0
    assert.ok(read > 1_000 && read <= second, `${second}, then ${read} when it is read`)
    await store.touch(key, 3_600_000)
    assert.ok((await expiresIn()) > 60_000)
    assert.ok(((await store.read(key))?.expiresIn ?? 0) > 60_000)
    await store.endOne(key)
    assert.equal(await store.expiresIn(key), undefined)
  })

  itWaits('drops an idle session', async ({ store, now, tick }) => {
    const begun = now()
    const { key } = await created(store, begun, { idle_timeout: 60 })

    await until(tick, async () => (await store.read(key)) === undefined)

    assert.ok(now() - begun >= 60, `forgotten after ${now() - begun} ms`)
    assert.equal(await store.touch(key, 60_000), false)
    assert.equal(await store.replace(key, Buffer.from('late'), 1), 'gone')
  })

  itWaits('keeps a session that is touched; reading and writing are no touch', async (opened) => {
    const { store, now, tick } = opened
    const idle_timeout = 2_500
    const begun = now()
    const touched = await created(store, begun, { idle_timeout })
    const read = await created(store, begun, { idle_timeout })
    let version = 1

    await until(tick, async () => {
      assert.equal(await store.touch(touched.key, idle_timeout), true)
      if ((await store.replace(read.key, Buffer.from('again'), version)) === 'replaced') version += 1
      return (await store.read(read.key)) === undefined
    })

    assert.ok(now() - begun >= idle_timeout, `forgotten after ${now() - begun} ms`)
    assert.notEqual(await store.read(touched.key), undefined)
  })

  itWaits('never moves the expiry past the absolute one', async ({ store, now, tick }) => {
    const begun = now()
    const { key } = await created(store, begun, { idle_timeout: 60_000, absolute_expires_at: begun + 2_000 })
    assert.equal(await store.touch(key, 60_000), true)

    await until(tick, async () => !(await store.touch(key, 60_000)))

    assert.ok(now() - begun >= 1_995, `forgotten after ${now() - begun} ms`)
    assert.equal(await store.read(key), undefined)
  })

  it('does not store a session whose time is up', async ({ store, now }) => {
    const session = newSession(now(), { absolute_expires_at: now() - 1 })

    await store.create(session)

    assert.equal(await store.read(session.key), undefined)
  })

  it('ends one session and returns it', async ({ store, now }) => {
    const ended = await created(store, now())
    const other = await created(store, now())

    const response = await store.endOne(ended.key)

    assert.deepEqual(keysOf(response), [ended.key])
    assert.deepEqual(Buffer.from(response[0]?.sealed ?? []), Buffer.from(ended.sealed))
    assert.equal(await store.read(ended.key), undefined)
    assert.notEqual(await store.read(other.key), undefined)
    assert.deepEqual(await store.endOne(ended.key), [])
  })

  it('ends the sessions of a sid and no others', async ({ store, now }) => {
    const [first, second] = [await created(store, now(), { sid: 'one' }), await created(store, now(), { sid: 'one' })]
    const otherSid = await created(store, now(), { sid: 'two' })
    const withoutSid = await created(store, now(), { sid: undefined })

    const response = await store.endSid(sidTag(iss, 'one'), order(now()))

    assert.deepEqual(keysOf(response), [first.key, second.key].toSorted())
    assert.equal(await store.read(first.key), undefined)
    assert.equal(await store.read(second.key), undefined)
    assert.notEqual(await store.read(otherSid.key), undefined)
    assert.notEqual(await store.read(withoutSid.key), undefined)
  })

  it('ends all sessions of a sub, whatever their sid, and no others', async ({ store, now }) => {
    const jane = await Promise.all(
      ['one', 'one', 'two', undefined, undefined].map((sid) => created(store, now(), { sub: 'jane', sid })),
    )
    const joe = await created(store, now(), { sub: 'joe', sid: 'three' })

    const response = await store.endSub(subTag(iss, 'jane'), order(now()))

    assert.deepEqual(keysOf(response), jane.map(({ key }) => key).toSorted())
    for (const { key } of jane) assert.equal(await store.read(key), undefined)
    assert.notEqual(await store.read(joe.key), undefined)
  })

  it('returns the latest bytes of an ended session', async ({ store, now }) => {
    const { key } = await created(store, now(), { sid: 'one' })
    await store.replace(key, Buffer.from('rotated'), 1)

    const [ended] = await store.endSid(sidTag(iss, 'one'), order(now()))

    assert.ok(typeof ended === 'object')
    assert.equal(Buffer.from(ended.sealed).toString(), 'rotated')
  })

  it('accepts a sid or sub without sessions', async ({ store, now }) => {
    assert.deepEqual(await store.endSid(sidTag(iss, 'nobody'), order(now())), [])
    assert.deepEqual(await store.endSub(subTag(iss, 'nobody'), order(now())), [])
  })

  it('finds an older session by its sub after a newer one began, and the newer after the older ended', async (opened) => {
    const { store, now } = opened
    const older = await created(store, now(), { sub: 'jane', sid: 'one' })
    const newer = await created(store, now(), { sub: 'jane', sid: 'two' })
    await store.endSid(sidTag(iss, 'one'), order(now()))
    assert.equal(await store.read(older.key), undefined)

    assert.deepEqual(keysOf(await store.endSub(subTag(iss, 'jane'), order(now()))), [newer.key])
  })

  it('finds the others by their sid and sub after one was ended alone', async ({ store, now }) => {
    const [one, two, three] = [
      await created(store, now(), { sub: 'jane', sid: 'one' }),
      await created(store, now(), { sub: 'jane', sid: 'one' }),
      await created(store, now(), { sub: 'jane', sid: 'two' }),
    ]
    await store.endOne(one.key)

    assert.deepEqual(keysOf(await store.endSid(sidTag(iss, 'one'), order(now()))), [two.key])
    assert.deepEqual(keysOf(await store.endSub(subTag(iss, 'jane'), order(now()))), [three.key])
  })

  for (const sid of strangeSids)
    it(`knows the sid ${JSON.stringify(sid.slice(0, 20))} from all others`, async ({ store, now }) => {
      const meant = await created(store, now(), { sid })
      const other = await created(store, now(), { sid: `${sid} ` })

      assert.deepEqual(keysOf(await store.endSid(sidTag(iss, sid), order(now()))), [meant.key])

      assert.equal(await store.read(meant.key), undefined)
      assert.notEqual(await store.read(other.key), undefined)
    })

  for (const [of, end] of [
    ['sid', (store: SessionStore, given: LogoutOrder) => store.endSid(sidTag(iss, 'one'), given)],
    ['sub', (store: SessionStore, given: LogoutOrder) => store.endSub(subTag(iss, 'jane'), given)],
  ] as const) {
    const jane = { sub: 'jane', sid: 'one' }

    it(`refuses a late session of an ended ${of}, and takes one that began afterwards`, async ({ store, now }) => {
      const at = now()
      await end(store, order(at))

      for (const begun_at of [at - 60_000, at - 1, at]) {
        const late = newSession(at, { ...jane, begun_at })
        assert.equal(await store.create(late), 'ended')
        assert.equal(await store.read(late.key), undefined)
      }
      const fresh = newSession(at, { ...jane, begun_at: at + 1 })
      assert.equal(await store.create(fresh), 'created')
      assert.notEqual(await store.read(fresh.key), undefined)
    })

    it(`indexes nothing of a refused session of an ended ${of}`, async ({ store, now }) => {
      const at = now()
      await end(store, order(at))
      await store.create(newSession(at, { ...jane, begun_at: at }))

      assert.deepEqual(await store.endSid(sidTag(iss, 'one'), order(at)), [])
      assert.deepEqual(await store.endSub(subTag(iss, 'jane'), order(at)), [])
    })

    it(`does not let an older order for a ${of} take back a newer one`, async ({ store, now }) => {
      const at = now()
      await end(store, order(at))
      await end(store, order(at - 5_000))

      assert.equal(await store.create(newSession(at, { ...jane, begun_at: at - 1_000 })), 'ended')
    })

    it(`remembers that a ${of} ended for as long as it was told to`, async ({ store, now, tick }) => {
      const at = now()
      await end(store, order(at, { ttl: 100 }))

      await until(
        tick,
        async () => (await store.create(newSession(now(), { ...jane, begun_at: at, idle_timeout: 5 }))) === 'created',
      )

      assert.ok(now() - at >= 100, `forgotten after ${now() - at} ms`)
    })

    it(`lets sessions go on that began after the first attempt of an order for a ${of}`, async ({ store, now }) => {
      const at = now()
      const [before, then] = [
        await created(store, at, { ...jane, begun_at: at - 1_000 }),
        await created(store, at, { ...jane, begun_at: at }),
      ]
      const later = await created(store, at, { ...jane, begun_at: at + 1 })
      assert.equal((await store.read(later.key))?.begun_at, at + 1)

      const repeated = order(at, { begun_until: at })
      assert.deepEqual(keysOf(await end(store, repeated)), [before.key, then.key].toSorted())

      assert.equal(await end(store, repeated), 'replayed')
      assert.equal(await store.read(before.key), undefined)
      assert.notEqual(await store.read(later.key), undefined)
      assert.equal(await store.create(newSession(at, { ...jane, begun_at: at })), 'ended')
      assert.equal(await store.create(newSession(at, { ...jane, begun_at: at + 2, idle_timeout: 1 })), 'created')
      // The session is still found by its sid and by its sub.
      assert.ok(keysOf(await end(store, order(at))).includes(later.key))
    })

    it(`carries out a logout token for a ${of} once`, async ({ store, now }) => {
      const token = order(now())
      const before = await created(store, now(), { ...jane, begun_at: token.at - 1 })
      assert.deepEqual(keysOf(await end(store, token)), [before.key])
      const after = newSession(now(), { ...jane, begun_at: token.at + 1_000 })
      assert.equal(await store.create(after), 'created')

      assert.equal(await end(store, token), 'replayed')
      // Nor does the replay move the tombstone.
      assert.equal(await end(store, { ...token, at: token.at + 60_000 }), 'replayed')

      assert.notEqual(await store.read(after.key), undefined)
      assert.equal(await store.create(newSession(now(), { ...jane, begun_at: token.at + 2_000 })), 'created')
      assert.deepEqual(keysOf(await end(store, order(token.at + 3_000))).includes(after.key), true)
    })

    it(`answers for each session once when a logout token for a ${of} arrives many times at once`, async (opened) => {
      const { store, now, tick } = opened
      const sessions = await Promise.all(times(5, () => created(store, now(), jane)))
      const token = order(now())
      const late = endedLate(store)

      const responses = await Promise.all(times(10, () => end(store, token)))

      const ended = responses.flatMap((response) => (response === 'replayed' ? [] : keysOf(response)))
      await until(tick, async () => ended.length + late.length >= 5)
      assert.deepEqual([...ended, ...late].toSorted(), sessions.map(({ key }) => key).toSorted())
      assert.ok(responses.includes('replayed'))
    })

    itWaits(`forgets the jti of a token for a ${of} when it has expired`, async ({ store, now, tick }) => {
      const begun = now()
      const token = order(begun, { jti_ttl: 100 })
      await end(store, token)

      await until(tick, async () => (await end(store, token)) !== 'replayed')

      assert.ok(now() - begun >= 100, `forgotten after ${now() - begun} ms`)
    })

    it(`leaves no session behind when its ${of} ends while it is created`, async ({ store, now }) => {
      // 7 times 5 rounds have each order of the calls with each delay.
      for (let round = 0; round < searchFor(60, 35); round++) {
        const name = `round ${round}`
        const begun_at = now()
        const ending = () =>
          of === 'sid'
            ? store.endSid(sidTag(iss, name), order(begun_at))
            : store.endSub(subTag(iss, name), order(begun_at))
        const late = times(6, (n) => newSession(begun_at, { sub: name, sid: n % 2 ? name : `${name} ${of}`, begun_at }))
        const meant = of === 'sid' ? late.filter(({ key }) => tagOf(key) === sidTag(iss, name)) : late
        // The order arrives after 0, 1, … of the creations were sent.
        const calls: (() => Promise<unknown>)[] = late.map((session) => () => store.create(session))
        calls.splice(round % 7, 0, ending)
        const begun = []
        for (const call of calls) {
          begun.push(call())
          for (let turn = 0; turn < round % 5; turn++) await Promise.resolve()
        }
        await Promise.all(begun)

        for (const { key } of meant) assert.equal(await store.read(key), undefined, `round ${round}`)
      }
    })
  }

  it('reports every session of a sub to exactly one of several endings', async ({ store, now, tick }) => {
    const sessions = await Promise.all(times(12, (n) => created(store, now(), { sub: 'jane', sid: `sid ${n % 3}` })))
    const late = endedLate(store)

    const responses = await Promise.all([
      store.endSub(subTag(iss, 'jane'), order(now())),
      ...times(3, (n) => store.endSid(sidTag(iss, `sid ${n}`), order(now()))),
      ...sessions.slice(0, 4).map(({ key }) => store.endOne(key)),
    ])

    const ended = responses.flatMap((response) => (response === 'replayed' ? assert.fail() : keysOf(response)))
    await until(tick, async () => ended.length + late.length >= 12)
    assert.deepEqual([...ended, ...late].toSorted(), sessions.map(({ key }) => key).toSorted())
  })

  it('never lets a write survive an ending that races with it', async ({ store, now }) => {
    for (let round = 0; round < 40; round++) {
      const { key } = await created(store, now(), { sid: `round ${round}` })

      const [, ended] = await Promise.all([
        store.replace(key, Buffer.from('rotated'), 1),
        store.endSid(sidTag(iss, `round ${round}`), order(now())),
        store.touch(key, 60_000),
        store.replace(key, Buffer.from('rotated too'), 1),
      ])

      assert.deepEqual(keysOf(ended), [key])
      assert.equal(await store.read(key), undefined)
    }
  })

  it('lets an operation happen once', async ({ store }) => {
    const responses = await Promise.all(times(50, () => store.takeOnce('https://id.example.com {state} *', 60_000)))

    assert.equal(responses.filter(Boolean).length, 1)
    assert.equal(await store.isMarked('https://id.example.com {state} *'), true)
    assert.equal(await store.isMarked('https://id.example.com {state} **'), false)
    assert.equal(await store.takeOnce('https://id.example.com {state} **', 60_000), true)
  })

  itWaits('remembers a mark for its time', async ({ store, tick }) => {
    await store.takeOnce('ended elsewhere: *', 1_000)
    await store.takeOnce('ended elsewhere: *', 1_000)

    assert.equal(await store.isMarked('ended elsewhere: *'), true)
    await until(tick, async () => !(await store.isMarked('ended elsewhere: *')))
  })

  itWaits('lets an operation happen again after its time', async ({ store, now, tick }) => {
    const begun = now()
    assert.equal(await store.takeOnce('a thing', 60), true)

    await until(tick, () => store.takeOnce('a thing', 60))

    assert.ok(now() - begun >= 60, `again after ${now() - begun} ms`)
  })

  it('gives a lease to one owner', async ({ store, now }) => {
    const { key } = await created(store, now())

    const responses = await Promise.all(times(20, (n) => store.acquireLease(key, `owner ${n}`, 60_000)))

    assert.equal(responses.filter(Boolean).length, 1)
    assert.equal(await store.acquireLease((await created(store, now())).key, 'another', 60_000), true)
  })

  it('releases a lease for its owner only', async ({ store, now }) => {
    const { key } = await created(store, now())
    assert.equal(await store.acquireLease(key, 'owner', 60_000), true)

    await store.releaseLease(key, 'somebody else')
    assert.equal(await store.renewLease(key, 'somebody else', 60_000), false)
    assert.equal(await store.acquireLease(key, 'somebody else', 60_000), false)
    await store.releaseLease(key, 'owner')

    assert.equal(await store.acquireLease(key, 'somebody else', 60_000), true)
    assert.equal(await store.renewLease(key, 'owner', 60_000), false)
  })

  itWaits('gives a lease that its owner did not renew to another', async ({ store, now, tick }) => {
    const { key } = await created(store, now())
    const begun = now()
    await store.acquireLease(key, 'dead', 60)

    await until(tick, () => store.acquireLease(key, 'alive', 60_000))

    assert.ok(now() - begun >= 60, `given after ${now() - begun} ms`)
    assert.equal(await store.renewLease(key, 'dead', 60_000), false)
    await store.releaseLease(key, 'dead')
    assert.equal(await store.renewLease(key, 'alive', 60_000), true)
  })

  itWaits('keeps a lease for an owner that renews it', async ({ store, now, tick }) => {
    const { key } = await created(store, now())
    const begun = now()
    await store.acquireLease(key, 'owner', 500)

    while (now() - begun < 800) {
      assert.equal(await store.renewLease(key, 'owner', 500), true)
      assert.equal(await store.acquireLease(key, 'somebody else', 500), false)
      await tick()
    }
  })

  it('removes the lease of a session that ends', async ({ store, now }) => {
    const endings = [
      (session: NewSession) => store.endOne(session.key),
      () => store.endSid(sidTag(iss, 'one'), order(now())),
      (session: NewSession) => store.endSub(session.subTag, order(now())),
    ]
    for (const [n, end] of endings.entries()) {
      const session = await created(store, now(), { sid: 'one', sub: `sub ${n}`, begun_at: now() + 1_000 })
      await store.acquireLease(session.key, 'owner', 60_000)

      await end(session)

      assert.equal(await store.renewLease(session.key, 'owner', 60_000), false)
    }
  })

  it('lists the sessions, all of them and by sid and sub, and none that has ended', async ({ store, now }) => {
    assert.deepEqual(await allKeys(store), [])
    const many = await Promise.all(
      times(60, (n) => created(store, now(), { sid: n % 3 ? `sid ${n}` : 'shared', sub: `sub ${n % 4}` })),
    )
    await store.acquireLease((many[0] as NewSession).key, 'owner', 60_000)
    const keysWhere = (holds: (n: number) => boolean) => many.flatMap(({ key }, n) => (holds(n) ? key : [])).toSorted()
    assert.deepEqual(
      await allKeys(store),
      keysWhere(() => true),
    )

    await store.endOne((many[1] as NewSession).key)
    await store.endSub(subTag(iss, 'sub 2'), order(now()))

    const isLeft = (n: number) => n !== 1 && n % 4 !== 2
    assert.deepEqual(await allKeys(store), keysWhere(isLeft))
    const listed = async (keys: Promise<readonly SessionKey[]>) => (await keys).toSorted()
    const shared = await listed(store.listSid(sidTag(iss, 'shared')))
    const ofSub = await listed(store.listSub(subTag(iss, 'sub 1')))
    assert.deepEqual(
      shared,
      keysWhere((n) => isLeft(n) && n % 3 === 0),
    )
    assert.deepEqual(
      ofSub,
      keysWhere((n) => isLeft(n) && n % 4 === 1),
    )
    assert.deepEqual(await store.listSub(subTag(iss, 'sub 2')), [])
    assert.deepEqual(await store.listSid(sidTag(iss, 'nobody')), [])
  })

  /** A session with a job whose index entry comes up after a minute. */
  async function withJob(store: SessionStore, at: number, facts: SessionFacts = {}): Promise<NewSession> {
    const session = await created(store, at, facts)
    await store.jobs.watch('audience', session.key, 60_000, 600_000)
    assert.equal(await store.replace(session.key, Buffer.from('second'), 1, Buffer.from('job')), 'replaced')
    return session
  }
  const takeEnded = async (store: SessionStore, ...ended: SessionKey[]) =>
    (await store.jobs.take('audience', { ended, limit: 100, lease: 60_000 })).map(({ key }) => key)

  it('keeps a job until its session has ended, and gives it to one of several processes', async ({ store, now }) => {
    const { key } = await withJob(store, now())
    assert.deepEqual(await takeEnded(store), [])
    assert.equal((await store.jobs.open(key, 60_000)).kind, 'waiting')

    await store.endOne(key)

    const takers = await Promise.all(times(10, () => takeEnded(store, key)))
    assert.ok(takers.flat().includes(key))
    const opened = await Promise.all(times(10, () => store.jobs.open(key, 60_000)))
    const due = opened.filter((each) => each.kind === 'due')
    assert.deepEqual(
      due.map(({ sealed, attempt }) => [Buffer.from(sealed).toString(), attempt]),
      [['job', 1]],
    )
    assert.equal(opened.filter(({ kind }) => kind === 'waiting').length, 9)
    await store.jobs.remove('audience', key)
    assert.deepEqual(await store.jobs.open(key, 60_000), { kind: 'none' })
    assert.deepEqual(await takeEnded(store, key), [])
  })

  itWaits('makes a job due when its session has expired', async ({ store, now, tick }) => {
    const { key } = await withJob(store, now(), { idle_timeout: 2_000 })
    const opened = await store.jobs.open(key, 60_000)
    assert.ok(opened.kind === 'waiting' && opened.forMs > 0 && opened.forMs <= 2_000)

    await until(tick, async () => (await store.jobs.open(key, 60_000)).kind === 'due')
  })

  itWaits('gives a job to another process when the first one died', async ({ store, now, tick }) => {
    const { key } = await withJob(store, now())
    await store.endOne(key)
    assert.deepEqual(
      (await store.jobs.take('audience', { ended: [key], limit: 1, lease: 200 })).map((taken) => taken.key),
      [key],
    )
    assert.equal((await store.jobs.open(key, 2_000)).kind, 'due')
    assert.equal((await store.jobs.open(key, 2_000)).kind, 'waiting')

    await until(tick, async () => (await takeEnded(store)).includes(key))
    await until(tick, async () => (await store.jobs.open(key, 60_000)).kind === 'due')

    await store.jobs.postpone('audience', key, 2_000, Buffer.from('the rest'))
    assert.deepEqual(await takeEnded(store), [])
    await until(tick, async () => (await takeEnded(store)).includes(key))
    let opened = await store.jobs.open(key, 60_000)
    await until(tick, async () => {
      if (opened.kind !== 'due') opened = await store.jobs.open(key, 60_000)
      return opened.kind === 'due'
    })
    assert.ok(opened.kind === 'due' && Buffer.from(opened.sealed).toString() === 'the rest' && opened.attempt === 3)
  })

  it('does not delay a job whose session ends while a process looks at it', async ({ store, now }) => {
    const { key } = await withJob(store, now())
    const [taken = assert.fail()] = await store.jobs.take('audience', { ended: [key], limit: 1, lease: 60_000 })
    assert.equal((await store.jobs.open(key, 60_000)).kind, 'waiting')
    await store.jobs.lookAgain('audience', taken, 120_000)
    assert.deepEqual(await takeEnded(store), [])
    const [again = assert.fail()] = await store.jobs.take('audience', { ended: [key], limit: 1, lease: 60_000 })
    await store.endOne(key)
    assert.deepEqual(await store.jobs.take('audience', { ended: [key], limit: 0, lease: 60_000 }), [])

    await store.jobs.lookAgain('audience', again, 120_000)

    assert.deepEqual(await takeEnded(store), [key])
  })

  it('replaces and removes a job with its session, and never for an ended one', async ({ store, now }) => {
    const [kept, removed, late] = [
      await withJob(store, now()),
      await withJob(store, now()),
      await created(store, now()),
    ]
    await store.replace(kept.key, Buffer.from('third'), 2)
    await store.replace(removed.key, Buffer.from('third'), 2, 'none')
    assert.equal(await store.replace(kept.key, Buffer.from('late'), 2, Buffer.from('conflict')), 'conflict')
    for (const { key } of [kept, removed, late]) await store.endOne(key)
    assert.equal(await store.replace(late.key, Buffer.from('late'), 1, Buffer.from('late')), 'gone')

    const opened = await store.jobs.open(kept.key, 60_000)
    assert.equal(opened.kind === 'due' && Buffer.from(opened.sealed).toString(), 'job')
    assert.equal((await store.jobs.open(removed.key, 60_000)).kind, 'none')
    assert.equal((await store.jobs.open(late.key, 60_000)).kind, 'none')
    await store.jobs.postpone('audience', late.key, 1, Buffer.from('late'))
    assert.equal((await store.jobs.open(late.key, 60_000)).kind, 'none')
  })

  it('names no job of another audience', async ({ store, now }) => {
    const { key } = await withJob(store, now())
    await store.endOne(key)

    assert.deepEqual(await store.jobs.take('another', { ended: [key], limit: 100, lease: 60_000 }), [])
    assert.deepEqual(await takeEnded(store, key), [key])
  })

  itWaits('holds nothing any more when everything has expired', async ({ store, now, tick, size }) => {
    const begun = now()
    const short = { idle_timeout: 2_500, absolute_expires_at: begun + 2_500 }
    const sessions = await Promise.all(
      times(12, (n) =>
        created(store, begun, { ...short, sub: `sub ${n % 3}`, sid: n % 5 ? `sid ${n % 4}` : undefined }),
      ),
    )
    await Promise.all(sessions.map(({ key }) => store.acquireLease(key, 'owner', 2_000)))
    await Promise.all(sessions.map(({ key }) => store.renewLease(key, 'owner', 2_500)))
    await Promise.all(sessions.map(({ key }) => store.replace(key, Buffer.from('rotated'), 1)))
    await store.takeOnce('a thing', 2_000)
    await store.touch((sessions[0] as NewSession).key, 60_000)
    const ttls = { jti_ttl: 2_000, ttl: 2_500 }
    await store.endOne((sessions[1] as NewSession).key)
    await store.endSid(sidTag(iss, 'sid 2'), order(begun, ttls))
    await store.endSub(subTag(iss, 'sub 0'), order(begun, ttls))
    await store.create(newSession(begun, { ...short, sub: 'sub 0', sid: 'sid 2' }))
    assert.notEqual(await size(), 0)

    await until(tick, async () => (await size()) === 0)
  })

  it('keeps the content of a request, and gives it once', async ({ store: { kept } }) => {
    const key = newKeptKey()
    const parts = [
      Uint8Array.from({ length: 300 }, (_, n) => n % 256),
      Buffer.from('täg\r\n\0'),
      Buffer.alloc(70_000, 'x'),
    ]

    await keptWith(kept, key, parts, 'the head')

    assert.deepEqual(headOf(await kept.read(key)), ['the head', 'kept'])
    const taken = await Promise.all(times(20, () => kept.take(key)))
    const content = taken.filter((each) => each !== undefined)
    assert.deepEqual(
      content.map((each) => each.map((part) => Buffer.from(part).toString('base64'))),
      [parts.map((part) => Buffer.from(part).toString('base64'))],
    )
    assert.deepEqual(headOf(await kept.read(key)), ['the head', 'sending'])
  })

  it('takes content again that was given back, and never content that was sent', async ({ store: { kept } }) => {
    const key = newKeptKey()
    await keptWith(kept, key, [Buffer.from('typed')], 'head')
    await kept.giveBack(key)
    assert.equal((await kept.take(key))?.length, 1)
    assert.equal(await kept.drop(key), false)

    await kept.giveBack(key)
    assert.equal((await kept.take(key))?.length, 1)
    await kept.finish(key)

    await kept.giveBack(key)
    assert.equal(await kept.take(key), undefined)
    assert.deepEqual(headOf(await kept.read(key)), ['head', 'sent'])
    assert.equal(await kept.drop(key), false)
    await kept.finish(key)
    assert.deepEqual(headOf(await kept.read(key)), ['head', 'sent'])
  })

  it('keeps a request without content', async ({ store: { kept } }) => {
    const key = newKeptKey()
    await keptWith(kept, key, [], 'head')
    assert.deepEqual(await kept.take(key), [])
  })

  it('shows no request that still arrives, and forgets one that was dropped', async ({ store: { kept } }) => {
    const key = newKeptKey()
    assert.equal(await kept.begin(key, 8, 60_000), 'begun')
    assert.equal(await kept.append(key, Buffer.from('half'), 60_000), true)
    assert.equal(await kept.read(key), undefined)
    assert.equal(await kept.take(key), undefined)

    assert.equal(await kept.drop(key), true)

    assert.equal(await kept.drop(key), false)
    assert.equal(await kept.append(key, Buffer.from('late'), 60_000), false)
    assert.equal(await kept.complete(key, Buffer.from('late'), 60_000), false)
    assert.equal(await kept.read(key), undefined)
    assert.equal(await kept.take(key), undefined)
  })

  it('limits the kept requests of each person; those that were sent or dropped do not count', async ({ store }) => {
    const { kept } = store
    const person = randomUUID()
    const keys = times(3, () => newKeptKey(person))
    for (const key of keys) assert.equal(await kept.begin(key, 3, 60_000), 'begun')
    assert.equal(await kept.begin(newKeptKey(person), 3, 60_000), 'too_many')
    assert.equal(await kept.begin(newKeptKey(), 3, 60_000), 'begun')

    await kept.drop(keys[0] as KeptKey)
    assert.equal(await kept.complete(keys[1] as KeptKey, Buffer.from('head'), 60_000), true)
    await kept.take(keys[1] as KeptKey)
    await kept.finish(keys[1] as KeptKey)

    assert.deepEqual(
      [
        await kept.begin(newKeptKey(person), 3, 60_000),
        await kept.begin(newKeptKey(person), 3, 60_000),
        await kept.begin(newKeptKey(person), 3, 60_000),
      ],
      ['begun', 'begun', 'too_many'],
    )
  })

  itWaits('holds no kept request any more when its time is over', async ({ store: { kept }, tick, size }) => {
    const person = randomUUID()
    const [arriving, complete, sending, sent] = times(4, () => newKeptKey(person))
    for (const key of [arriving, complete, sending, sent] as KeptKey[]) {
      await kept.begin(key, 4, 1_500)
      await kept.append(key, Buffer.from('typed'), 1_500)
      if (key !== arriving) await kept.complete(key, Buffer.from('head'), 1_500)
    }
    await kept.take(sending as KeptKey)
    await kept.take(sent as KeptKey)
    await kept.finish(sent as KeptKey)
    assert.equal(await kept.begin(newKeptKey(person), 3, 1_500), 'too_many')

    await until(tick, async () => (await kept.read(complete as KeptKey)) === undefined)

    assert.equal(await kept.take(complete as KeptKey), undefined)
    await until(tick, async () => (await size()) === 0)
    assert.equal(await kept.begin(newKeptKey(person), 1, 1_500), 'begun')
  })

  it('replies to a ping', async ({ store }) => {
    await store.ping()
  })

  describe(`${name}, as time passes`, { concurrency: 8 }, () => waiting.forEach(([what, story]) => it(what, story)))
}

/**
 * The sessions that the store reports by a notice. After a lost connection, which a busy machine
 * may cause too, the store enters its sessions in the index again, and ends those that an order has
 * not found.
 */
function endedLate(store: SessionStore): readonly SessionKey[] {
  const late: SessionKey[] = []
  store.onNotice((notice) => {
    if (notice.kind === 'ended_late') late.push(...notice.sessions.map(({ key }) => key))
  })
  return late
}

async function keptWith(kept: KeptStore, key: KeptKey, parts: readonly Uint8Array[], head: string): Promise<void> {
  assert.equal(await kept.begin(key, 8, 60_000), 'begun')
  for (const part of parts) assert.equal(await kept.append(key, part, 60_000), true)
  assert.equal(await kept.complete(key, Buffer.from(head), 60_000), true)
}

function headOf(kept: KeptHead | undefined): readonly [string, string] | undefined {
  return kept && [Buffer.from(kept.head).toString(), kept.state]
}

/** A new kept request of a person; without one, of a person who has no other. */
export function newKeptKey(person: string = randomUUID()): KeptKey {
  return `${subTag(iss, person)}:${randomToken(24)}` as KeptKey
}

interface SessionFacts {
  readonly sub?: string
  readonly sid?: string | undefined
  readonly sealed?: Uint8Array
  readonly idle_timeout?: number
  readonly absolute_expires_at?: number
  readonly begun_at?: number
}

/** A new session. Its sid and sub are unique unless they are given. */
export function newSession(now: number, facts: SessionFacts = {}): NewSession {
  const { sub = randomUUID() } = facts
  const sid = 'sid' in facts ? facts.sid : randomUUID()
  return {
    key: sessionKey(newSessionId(iss, { sub, ...(sid !== undefined && { sid }) })),
    subTag: subTag(iss, sub),
    sealed: facts.sealed ?? Buffer.from(randomUUID()),
    idle_timeout: facts.idle_timeout ?? 60_000,
    absolute_expires_at: facts.absolute_expires_at ?? now + 600_000,
    begun_at: facts.begun_at ?? now - 10,
  }
}

export async function created(store: SessionStore, now: number, facts: SessionFacts = {}): Promise<NewSession> {
  const session = newSession(now, facts)
  assert.equal(await store.create(session), 'created')
  return session
}

/** A Logout Token that was not used before. */
export function order(at: number, ttls: Partial<LogoutOrder> = {}): LogoutOrder {
  return { jti: randomUUID(), jti_ttl: 120_000, at, ttl: 600_000, ...ttls }
}

export function keysOf(ended: Awaited<ReturnType<SessionStore['endSid']>>): SessionKey[] {
  return ended === 'replayed' ? assert.fail('replayed') : ended.map(({ key }) => key).toSorted()
}

/** What `list` names, once each. */
export async function allKeys(store: SessionStore): Promise<SessionKey[]> {
  const keys = new Set<SessionKey>()
  for await (const some of store.list()) for (const key of some) keys.add(key)
  return [...keys].toSorted()
}

export function times<T>(count: number, make: (n: number) => T): T[] {
  return Array.from({ length: count }, (_, n) => make(n))
}

/** Waits for something that can be seen. Only a failing test waits two minutes. */
export async function until(tick: () => Promise<void>, seen: () => Promise<boolean> | boolean): Promise<void> {
  const limit = performance.now() + 120_000
  while (!(await seen())) {
    if (performance.now() > limit) assert.fail('was waited for and did not happen within two minutes')
    await tick()
  }
}
