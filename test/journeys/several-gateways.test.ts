import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Configuration } from 'oidc-provider'
import type { Browser } from '../support/browser.ts'
import { freePort } from '../support/free-port.ts'
import { until } from '../support/until.ts'
import { type Replica, runReplica, startWorld } from '../support/world.ts'

// Single sign-out where several gateways share a provider: docs/logout.md.

/**
 * A client of oidc-provider, which sends Logout Tokens to the one URI that it is registered with.
 */
interface RegisteredClient {
  backchannelLogout(sub: string, sid: string): Promise<void>
}

/** Gateway one is that of the world, gateway two is another one at the same provider. */
async function startTwo(t: TestContext, client_id: string, store: 'memory' | 'redis' = 'memory') {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  let find: (id: string) => Promise<unknown> = async () => undefined
  const adjust = (base: Configuration): Configuration => {
    const [orders = assert.fail()] = base.clients ?? []
    const own = {
      redirect_uris: [`${url}/.gatehouse/callback`],
      backchannel_logout_uri: `${url}/.gatehouse/backchannel-logout`,
    }
    const clients =
      client_id === 'orders'
        ? [{ ...orders, redirect_uris: [...(orders.redirect_uris ?? []), ...own.redirect_uris] }]
        : [orders, { ...orders, ...own, client_id }]
    return { ...base, clients }
  }
  const world = await startWorld(t, {
    store,
    provider: { adjust, extend: ({ Client }) => void (find = (id) => Client.find(id)) },
  })
  let moved = 0
  const two = await runReplica(
    t,
    `version: 1
listen: 127.0.0.1:${port}
external_url: ${url}
shutdown: { drain_timeout: 500ms }
provider:
  issuer: ${world.provider.issuer}
  client_id: ${client_id}
  client_secret: { env: CLIENT_SECRET }
session:
  keys: [{ env: SESSION_KEY }]
  cookie: { name: two }
  idle_timeout: 3h
  store: ${world.redis === undefined ? 'memory' : `{ redis: { url: "${world.redis.url}" } }`}
upstreams:
  wiki: { url: "${world.upstream.origin}" }
`,
    { now: () => Date.now() + moved },
  )
  const jane = world.browser()
  for (const at of [world.url, url]) assert.equal((await jane.get(`${at}/echo`)).status, 200)
  return {
    world,
    two,
    url,
    jane,
    client: async (id: string) => (await find(id)) as RegisteredClient,
    pass: (ms: number) => void (moved += ms),
  }
}

const isSignedIn = async (jane: Browser, url: string) => (await jane.fetch(`${url}/echo`)).status === 200

function createdIn({ log }: Replica): { readonly sub: string; readonly sid: string } {
  const created = log.find(({ message }) => message === 'session.created')?.fields ?? {}
  return { sub: String(created['sub']), sid: String(created['sid']) }
}

test('With a client for each gateway, the provider ends the sessions at all of them', async (t) => {
  const { world, two, url, jane, client } = await startTwo(t, 'wiki')
  const [one = assert.fail()] = world.replicas

  // As at the end of a session: a Logout Token for each client that took part in it.
  for (const [id, gateway] of [
    ['orders', one],
    ['wiki', two],
  ] as const) {
    const { sub, sid } = createdIn(gateway)
    await (await client(id)).backchannelLogout(sub, sid)
  }

  for (const at of [world.url, url]) await until('the session has ended', async () => !(await isSignedIn(jane, at)))
})

test('With one client for two gateways, only the registered one learns of a logout; the other at its next refresh', async (t) => {
  const { world, two, url, jane, pass } = await startTwo(t, 'orders')
  const [one = assert.fail()] = world.replicas

  await world.provider.endSession(createdIn(one).sid)

  assert.equal(await isSignedIn(jane, world.url), false)
  assert.equal(await isSignedIn(jane, url), true)
  pass(61 * 60_000)
  assert.equal(await isSignedIn(jane, url), false)
  const ended = two.log.find(({ message }) => message === 'session.ended')
  assert.equal(ended?.fields['by'], 'invalid_grant')
})

test('Gateways with one client, one Redis and the same keys end sessions for each other', async (t) => {
  const { world, url, jane } = await startTwo(t, 'orders', 'redis')
  const [one = assert.fail()] = world.replicas

  await world.provider.endSession(createdIn(one).sid)

  assert.equal(await isSignedIn(jane, world.url), false)
  assert.equal(await isSignedIn(jane, url), false)
})
