// Slow: 3 s, a Cluster starts again from older copies
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { redisFindings } from '../../packages/doctor/redis.ts'
import { examineRedis } from '../../src/session/store/redis/examine.ts'
import { open, responds, settings, tick } from '../session/redis-stores.ts'
import { created, until } from '../session/store-contract.ts'
import { type Bend, scriptsAs, startBentRedis } from '../support/bent-redis.ts'
import { replacePauses } from '../support/pauses.ts'
import { startRedis } from '../support/redis.ts'
import { startWorld } from '../support/world.ts'

const shared = await startRedis({ after })
const url = (port: number) => new URL(`redis://127.0.0.1:${port}`)

/**
 * Its clock stands still in scripts. Indexes, whose expiry is an absolute time, are gone at once.
 */
const noTime = scriptsAs((lua) => lua.replaceAll("redis.call('TIME')", "{ '0', '0' }"))

const servers: readonly (readonly [what: string, fault: RegExp, bend: Bend])[] = [
  ['has no time in scripts', /inside a script, its time is \d{10} s behind its time outside/, noTime],
  [
    'has another time in scripts',
    /inside a script, its time is 60 s ahead of its time outside/,
    scriptsAs((lua) => lua.replace("local time = redis.call('TIME')", '$& time[1] = time[1] + 60')),
  ],
  [
    'ignores the expiry of an index',
    /does not keep the expiry/,
    scriptsAs((lua) => lua.replaceAll("redis.call('PEXPIREAT'", "redis.call('EXISTS'")),
  ],
  [
    'keeps keys that have expired',
    /a key outlives its expiry/,
    scriptsAs((lua) =>
      lua.replace("redis.call('PEXPIRE', KEYS[1], ttl)", "redis.call('PEXPIRE', KEYS[1], math.max(ttl, 5000))"),
    ),
  ],
  [
    'forgets who is in an index',
    /do not end a session/,
    scriptsAs((lua) => lua.replace("return redis.call('ZRANGE', KEYS[1], 0, -1)", 'return {}')),
  ],
  [
    'runs other commands in the middle of a script',
    /not atomic/,
    async ({ args, aside, elsewhere }) => {
      if (!args[1]?.includes("'half'")) return undefined
      aside('SET', args[3] ?? '', 'half', 'PX', '10000')
      await elsewhere('GET')
      return undefined
    },
  ],
  [
    'drops the messages of scripts',
    /a message that a script publishes does not reach/,
    scriptsAs((lua) => lua.replaceAll(/redis\.call\('PUBLISH'[^)]*\)/g, "tonumber('1')")),
  ],
  [
    'puts the keys of a sid into several slots',
    /the keys of one sid do not lie in one slot/,
    ({ args }) =>
      args[0] === 'EVAL' && Number(args[2]) > 1
        ? new Error("CROSSSLOT Keys in request don't hash to the same slot")
        : undefined,
  ],
  [
    'has no scripts',
    /ERR unknown command/,
    ({ args }) => (args[0]?.startsWith('EVAL') ? new Error("ERR unknown command 'EVAL'") : undefined),
  ],
]

for (const [what, fault, bend] of servers) {
  test(`A store that ${what} is refused, until the gateway is connected to another one`, async (t) => {
    replacePauses(t, { tryStoreAgainMs: 100 })
    const bent = await startBentRedis(t, shared.port, bend)
    const { store, log } = open(t, { ...settings, timeoutMs: 2_000, kind: 'redis', url: url(bent.port) })

    await until(tick, () => log.messages().includes('store.unfit'))
    assert.match(String(log.lines.find(({ message }) => message === 'store.unfit')?.fields?.['reason']), fault)
    await assert.rejects(store.ping(), (error: Error) => fault.test(error.message))
    await assert.rejects(created(store, Date.now()), { code: 'ERR_STORE_UNAVAILABLE' })
    await until(tick, () => store.receivesNotices() === false)

    bent.bend = undefined
    await until(tick, () => responds(store))
    assert.ok(log.messages().includes('store.fit'))
    await created(store, Date.now())
  })

  test(`doctor names a store that ${what}`, async (t) => {
    const bent = await startBentRedis(t, shared.port, bend)
    const config = { ...settings, timeoutMs: 2_000, kind: 'redis', url: url(bent.port) } as const

    const findings = redisFindings(await examineRedis(config), config)

    const about = findings.filter(({ level }) => level === 'fault')
    assert.ok(
      about.some(({ what }) => fault.test(what)),
      JSON.stringify(about),
    )
  })
}

test('With a store that has no time in scripts, sign-ins fail, and a Logout Token gets no 200', async (t) => {
  replacePauses(t, { waitForDependenciesMs: 500 })
  const bent = await startBentRedis(t, shared.port, noTime)
  const world = await startWorld(t, { store: 'redis', redis: { ...shared, ...bent } })
  const jane = world.browser()

  const logout_token = await world.provider.logoutToken({ sub: 'jane' })

  assert.equal((await jane.get(`${world.url}/echo`)).status, 503)
  assert.equal((await world.postLogoutToken({ logout_token })).status, 503)
})
