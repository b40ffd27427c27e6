import assert from 'node:assert/strict'
import { request } from 'node:http'
import type { Browser, Visit } from '../support/browser.ts'
import { until } from '../support/until.ts'
import type { Bends } from './hostile-provider.ts'
import type { TokenBend } from './hostile-tokens.ts'
import { application, type HostileWorld } from './hostile-world.ts'

/** One fault, and the expected outcome. */
export interface Behaviour {
  readonly id: string
  readonly what: string
  readonly scenario: string
  readonly rule?: string
  /** The fault that must never happen again. */
  readonly regression?: string
  readonly provider?: Bends
  /** The faults of the provider after the sign-in. */
  readonly then?: Bends
  /** The Logout Token, and how it is sent. */
  readonly token?: TokenBend
  readonly useIdToken?: boolean
  readonly post?: Post
  /** The person is signed in on two devices. */
  readonly twoSessions?: boolean
  readonly loginWithNewKeyFirst?: boolean
  /** The way in which the browser returns from the sign-out. */
  readonly comesBack?: { readonly state?: string }
  /** YAML below `provider:`. */
  readonly settings?: string
  readonly expect: Expectation
  /** The expected values that differ from the usual ones. */
  readonly why?: string
}

export interface Expectation {
  /** Whether there is a session afterwards. Absent: both are permitted. */
  readonly session?: boolean
  readonly callback?: 'refused' | 'done' | 'any' | readonly string[]
  /** The statuses of the back-channel logout endpoint. */
  readonly receiver?: readonly (number | string)[]
  readonly after?: boolean
  readonly maxMs?: number
  readonly upstreamLacks?: readonly string[]
  readonly headersLack?: string
  readonly pageLacks?: readonly string[]
  /** The gateway sends no request to the attacker's URL. */
  readonly evilIsAlone?: boolean
  /** The session can still be found by its sid. */
  readonly sidStill?: boolean
  readonly refreshes?: readonly [number, number]
  readonly mostRefreshes?: number
  /** How often a used refresh token may be sent. */
  readonly reuse?: number
  readonly recovers?: boolean
  readonly maxJwks?: number
  readonly noEndSession?: boolean
  /** Parameters of the authorization request. */
  readonly asked?: Readonly<Record<string, string>>
}

interface Post {
  readonly ctype?: string
  readonly extra?: string
  readonly raw?: string
  readonly twice?: boolean
  readonly json?: boolean
  readonly inQuery?: boolean
  readonly method?: string
}

export interface Case {
  readonly row: Behaviour
  readonly world: HostileWorld
  readonly alice: Browser
}

type Scenario = (aCase: Case) => Promise<void>

/** Access tokens of these cases live for two minutes, in ms. */
const untilExpired = 121_000
const form = (token: string) => `logout_token=${encodeURIComponent(token)}`

const scenarios: Readonly<Record<string, Scenario>> = {
  login,
  callback: login,

  login2: async (aCase) => {
    const { world, row } = aCase
    world.provider.bends = {}
    await world.signIn(world.browser())
    world.provider.bends = row.provider ?? {}
    await login(aCase)
  },

  rotate: async (aCase) => {
    const { world, row } = aCase
    world.provider.bends = {}
    await signedIn(world, world.browser())
    world.provider.rotateTo('b')
    if (row.loginWithNewKeyFirst) await signedIn(world, world.browser())
    world.provider.bends = row.provider ?? {}
    await login(aCase)
  },

  'cb-no-cookie': async ({ world, alice, row }) => {
    const callback = await world.start(alice)
    const stranger = world.browser()
    judgeCallback(await stranger.send(callback), row)
    assert.equal(await world.isSignedIn(stranger), false)
  },

  'cb-other-browser': async ({ world, alice, row }) => {
    const callback = await world.start(alice)
    const stranger = world.browser()
    await world.start(stranger)
    judgeCallback(await stranger.send(callback), row)
    assert.equal(await world.isSignedIn(stranger), false)
  },

  'cb-other-state': async ({ world, alice, row }) => {
    const other = new URL(await world.start(world.browser())).searchParams.get('state') ?? ''
    const callback = new URL(await world.start(alice))
    callback.searchParams.set('state', other)
    judgeCallback(await alice.send(callback.href), row)
    assert.equal(await world.isSignedIn(alice), false)
  },

  'cb-replay': async ({ world, alice, row }) => {
    const callback = await world.start(alice)
    await alice.send(callback)
    const kept = world.browser(alice)
    judgeCallback(await alice.send(callback), row)
    assert.equal(await world.isSignedIn(kept), true)
    const stranger = world.browser()
    await stranger.send(callback)
    assert.equal(await world.isSignedIn(stranger), false)
    assert.equal(world.provider.hits('code_reuse'), 0, 'the used code was sent to the provider again')
  },

  'cb-code-injection': async ({ world, alice, row }) => {
    const victims = new URL(await world.start(world.browser()))
    const callback = new URL(await world.start(alice))
    callback.searchParams.set('code', victims.searchParams.get('code') ?? '')
    judgeCallback(await alice.send(callback.href), row)
    assert.equal(await world.isSignedIn(alice), false)
  },

  'cb-two-tabs': async ({ world, alice, row }) => {
    const [first, second] = [await world.start(alice), await world.start(alice)]
    for (const callback of [first, second]) judgeCallback(await alice.send(callback), row)
    assert.equal(await world.isSignedIn(alice), true)
  },

  'cb-post': async ({ world, alice, row }) => {
    const callback = new URL(await world.start(alice))
    const body = callback.searchParams.toString()
    callback.search = ''
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    judgeCallback(await alice.send(callback.href, { method: 'POST', headers, body }), row)
    assert.equal(await world.isSignedIn(alice), false)
  },

  'cb-head': async ({ world, alice, row }) => {
    const callback = await world.start(alice)
    judgeCallback(await world.browser(alice).send(callback, { method: 'HEAD' }), row)
    await alice.send(callback)
    assert.equal(await world.isSignedIn(alice), true)
  },

  fixation: async ({ world, alice, row }) => {
    const mallory = world.browser()
    await world.signIn(mallory)
    const planted = world.browser(mallory)
    await world.signOut(mallory)
    for (const [name, cookie] of planted.cookies) alice.cookies.set(name, cookie)
    judgeCallback(await world.signIn(alice), row)
    assert.equal(await world.isSignedIn(alice), true)
    assert.equal(await world.isSignedIn(planted), false, 'the planted cookie is signed in now')
  },

  'cookie-flags': async ({ world, alice, row }) => {
    const first = await world.visit(alice)
    const response = await world.signIn(alice)
    judgeCallback(response, row)
    for (const line of [first, response].flatMap(({ headers }) => headers['set-cookie'] ?? [])) {
      for (const attribute of [/; HttpOnly/, /; SameSite=(?:Lax|Strict)/, /; Path=\//]) assert.match(line, attribute)
      assert.doesNotMatch(line, /domain=/i)
      for (const secret of secretsOf(world)) assert.ok(!line.includes(secret), 'a cookie holds a token')
    }
    // 128 bits in base64url are 22 characters.
    assert.ok([...alice.cookies.values()].some(({ value }) => value.length >= 22))
  },

  deeplink: async ({ world, alice }) => {
    const path = `${application}/deep/%C3%A9?q=a%26b&x=%2F%2Fevil`
    const { headers } = await world.signIn(alice, path)
    assert.equal(headers['location'], path)
    assert.equal(await world.isSignedIn(alice), true)
  },

  'no-leak': async ({ world, alice }) => {
    const [first, response] = [await world.visit(alice), await world.signIn(alice)]
    const shown = JSON.stringify([first.headers, first.body, response.headers, response.body])
    for (const secret of secretsOf(world)) assert.ok(!shown.includes(secret), 'the browser was shown a token')
    assert.ok(!shown.includes(encodeURIComponent(world.provider.client_secret)))
  },

  bcl: async (aCase) => {
    const { world, alice, row } = aCase
    await signedIn(world, alice)
    const second = row.twoSessions ? await elsewhere(world, { sid: 'sid-second' }) : undefined
    const { provider } = world
    const token = row.useIdToken ? String(provider.lastToken['id_token']) : provider.logoutToken(row.token)
    if (row.then) provider.bends = row.then
    await judgeReceiver(await post(world, token, row.post), row)
    await judgeAfter(aCase, alice)
    if (second) await judgeAfter(aCase, second)
  },

  'bcl-concurrent': async (aCase) => {
    const { world, alice, row } = aCase
    await signedIn(world, alice)
    const token = world.provider.logoutToken(row.token)
    const responses = await Promise.all(Array.from({ length: 20 }, () => post(world, token)))
    for (const response of responses) await judgeReceiver(response, row)
    await judgeAfter(aCase, alice)
  },

  'bcl-cookies': async (aCase) => {
    const { world, alice, row } = aCase
    await signedIn(world, alice)
    const bob = await elsewhere(world, { sid: 'sid-bob', sub: 'bob' }, (provider) => provider.logoutToken())
    await judgeReceiver(await post(world, bob.made, row.post, alice.cookieHeader), row)
    await judgeAfter(aCase, alice)
    assert.equal(await world.isSignedIn(bob), false)
  },

  'bcl-other-user': async (aCase) => {
    const { world, alice, row } = aCase
    await signedIn(world, alice)
    const bob = await elsewhere(world, { sid: 'sid-bob', sub: 'bob' }, (provider) => provider.logoutToken())
    await judgeReceiver(await post(world, bob.made), row)
    assert.equal(await world.isSignedIn(bob), false)
    await judgeAfter(aCase, alice)
  },

  'bcl-replay': async (aCase) => {
    const { world, alice, row } = aCase
    await signedIn(world, alice)
    const token = world.provider.logoutToken(row.token)
    await post(world, token)
    assert.equal(await world.isSignedIn(alice), false)
    const again = await elsewhere(world, { sid: 'sid-again' })
    await judgeReceiver(await post(world, token), row)
    await judgeAfter(aCase, again)
  },

  /** The new session has the `sid` of the ended one. */
  'bcl-replay-same-sid': async (aCase) => {
    const { world, alice, row } = aCase
    await signedIn(world, alice)
    const token = world.provider.logoutToken(row.token)
    await judgeReceiver(await post(world, token), row)
    assert.equal(await world.isSignedIn(alice), false)
    await signedIn(world, alice)
    await judgeReceiver(await post(world, token), row)
    await judgeAfter(aCase, alice)
  },

  'bcl-mid-login': async ({ world, alice, row }) => {
    const callback = await world.start(alice)
    await judgeReceiver(await post(world, world.provider.logoutToken()), row)
    await alice.send(callback)
    assert.equal(await world.isSignedIn(alice), false, 'signed in although the provider had ended the session')
  },

  'bcl-amplification': async ({ world, alice, row }) => {
    await signedIn(world, alice)
    const before = world.provider.hits('jwks')
    for (let index = 0; index < 60; index += 1)
      await post(world, world.provider.logoutToken({ key: 'c', header: { set: { kid: `unknown-${index}` } } }))
    const fetched = world.provider.hits('jwks') - before
    assert.ok(fetched <= (row.expect.maxJwks ?? 0), `the keys were fetched ${fetched} times`)
    assert.equal(await world.isSignedIn(alice), true)
  },

  'bcl-sub-index': async ({ world, alice, row }) => {
    await signedIn(world, alice)
    const newer = await elsewhere(world, { sid: 'sid-newer' })
    await world.signOut(alice)
    await judgeReceiver(await post(world, world.provider.logoutToken(row.token)), row)
    assert.equal(await world.isSignedIn(newer), false)
  },

  'bcl-refresh-race': async (aCase) => {
    const { world, alice, row } = aCase
    await signedIn(world, alice)
    world.moveClock(untilExpired)
    const refreshing = world.visit(alice)
    await until('the refresh is under way', () => world.provider.hits('token_refresh') > 0)
    await judgeReceiver(await post(world, world.provider.logoutToken()), row)
    await refreshing
    await judgeAfter(aCase, alice)
  },

  refresh: async (aCase) => {
    const { world, alice, row } = aCase
    await signedIn(world, alice)
    world.moveClock(untilExpired)
    judgeResponse(await timed(world.visit(alice), row))
    if (row.expect.after !== undefined) assert.equal(await world.isSignedIn(alice), row.expect.after)
    const [least, most] = row.expect.refreshes ?? [0, Infinity]
    const refreshes = world.provider.hits('token_refresh')
    assert.ok(refreshes >= least && refreshes <= most, `${refreshes} refreshes`)
    if (!row.expect.recovers) return
    world.provider.bends = {}
    world.moveClock(untilExpired)
    assert.equal(await world.isSignedIn(alice), true, 'the fault is gone, and the session with it')
  },

  'ref-concurrent': async ({ world, alice, row }) => {
    await signedIn(world, alice)
    world.moveClock(untilExpired)
    const responses = await Promise.all(Array.from({ length: 20 }, () => world.isSignedIn(alice)))
    assert.ok(responses.every(Boolean))
    assert.equal(world.provider.hits('token_refresh'), row.expect.mostRefreshes)
  },

  'ref-abort': async (aCase) => {
    const { world, alice } = aCase
    await signedIn(world, alice)
    world.moveClock(untilExpired)
    const given = request(world.url + application, { headers: { cookie: alice.cookieHeader } })
    given.on('error', () => {})
    given.end()
    await until('the refresh is under way', () => world.provider.hits('token_refresh') > 0)
    given.destroy()
    await judgeAfter(aCase, alice)
  },

  rpl: async ({ world, alice, row }) => {
    await signedIn(world, alice)
    const before = world.browser(alice)
    const { headers } = await world.signOut(alice)
    const { origin, pathname, searchParams } = new URL(String(headers['location']), world.url)
    if (row.expect.noEndSession) assert.equal(origin, world.url)
    else {
      assert.equal(origin + pathname, `${world.provider.issuer}/end_session`)
      assert.ok(searchParams.has('id_token_hint') && searchParams.has('post_logout_redirect_uri'))
    }
    assert.equal(await world.isSignedIn(before), false)
    assert.match(String(headers['set-cookie']), /max-age=0/i)
    assert.match(String(headers['cache-control']), /no-store/)
  },

  'rpl-return': async ({ world, alice, row }) => {
    await signedIn(world, alice)
    await world.signOut(alice)
    const { state } = row.comesBack ?? {}
    const response = await alice.send(
      `${world.url}/.gatehouse/signed-out${state === undefined ? '' : `?state=${state}`}`,
    )
    assert.equal(response.status, 200)
    judgePage(response, row)
    assert.equal(await world.isSignedIn(alice), false)
  },

  'rpl-anon': async ({ world, alice }) => {
    const { status } = await world.signOut(alice)
    assert.ok(status < 500)
  },

  'rpl-cross-site': async ({ world, alice }) => {
    await signedIn(world, alice)
    const headers = { accept: 'image/*', 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' }
    await alice.send(`${world.url}/.gatehouse/sign-out`, { headers: { ...headers, 'sec-fetch-dest': 'image' } })
    assert.equal(await world.isSignedIn(alice), true)
  },

  'rpl-replay-cookie': async ({ world, alice }) => {
    await signedIn(world, alice)
    const before = world.browser(alice)
    await world.signOut(alice)
    assert.equal(await world.isSignedIn(before), false)
  },
}

export async function play(aCase: Case): Promise<void> {
  const scenario = scenarios[aCase.row.scenario]
  if (scenario === undefined) throw new Error(`no scenario is called ${aCase.row.scenario}`)
  await scenario(aCase)
}

async function login({ world, alice, row }: Case): Promise<void> {
  // The gateway does not redirect to an unreachable provider.
  const isFound = world.provider.bends.discovery === undefined
  const response = await timed(isFound ? world.signIn(alice) : alice.get(world.url + application), row)
  judgeCallback(response, row)
  judgePage(response, row)
  for (const [name, value] of Object.entries(row.expect.asked ?? {})) assert.equal(world.provider.asked[name], value)
  const isSignedIn = await world.isSignedIn(alice)
  if (row.expect.session !== undefined) assert.equal(isSignedIn, row.expect.session)
  if (!row.expect.recovers) return
  world.provider.bends = {}
  // Also for those who count the time until they look again.
  world.moveClock(60_000)
  await signedIn(world, alice)
}

async function signedIn(world: HostileWorld, browser: Browser): Promise<void> {
  await world.signIn(browser)
  assert.equal(await world.isSignedIn(browser), true, 'nobody could sign in')
}

/**
 * Signs in with another browser as another person, or with another session, and changes the
 * provider meanwhile.
 */
async function elsewhere<T>(
  world: HostileWorld,
  { sid, sub }: { readonly sid: string; readonly sub?: string },
  make: (provider: HostileWorld['provider']) => T = () => undefined as T,
): Promise<Browser & { readonly made: T }> {
  const { provider } = world
  const [formerSid, formerSub] = [provider.sid, provider.sub]
  provider.sid = sid
  if (sub !== undefined) provider.sub = sub
  const browser = world.browser()
  await signedIn(world, browser)
  const made = make(provider)
  provider.sid = formerSid
  provider.sub = formerSub
  return Object.assign(browser, { made })
}

async function post(world: HostileWorld, token: string, how: Post = {}, cookie?: string): Promise<Response> {
  const { ctype, extra, raw, twice, json, inQuery, method } = how
  const multipart = `--x\r\nContent-Disposition: form-data; name="logout_token"\r\n\r\n${token}\r\n--x--\r\n`
  if (method !== undefined || inQuery)
    return fetch(`${world.url}/.gatehouse/backchannel-logout?${form(token)}`, { method: method ?? 'POST' })
  const plain = raw ?? [...(extra === undefined ? [] : [extra]), form(token), ...(twice ? [form(token)] : [])].join('&')
  const type = json ? 'application/json' : ctype
  const body = json ? JSON.stringify({ logout_token: token }) : type?.startsWith('multipart') ? multipart : plain
  return world.postLogoutToken(body, {
    ...(type === undefined ? {} : { type }),
    ...(cookie === undefined ? {} : { cookie }),
  })
}

async function judgeReceiver(response: Response, { expect: { receiver } }: Behaviour): Promise<void> {
  const body = await response.text()
  if (receiver !== undefined)
    assert.ok(receiver.includes(response.status), `the receiver responded with ${response.status}: ${body}`)
  assert.match(response.headers.get('cache-control') ?? '', /no-store/)
  assert.equal(response.headers.get('set-cookie'), null)
}

async function judgeAfter({ world, row }: Case, browser: Browser): Promise<void> {
  if (row.expect.after !== undefined) assert.equal(await world.isSignedIn(browser), row.expect.after)
}

const classes = { done: /^(?:3..|200)$/, refused: /^(?:4..|50[234])$/, any: /^(?:3..|200|4..|50[234])$/ } as const

function judgeCallback(response: Visit, { expect: { callback } }: Behaviour): void {
  judgeResponse(response)
  if (callback === undefined) return
  if (typeof callback === 'string') assert.match(String(response.status), classes[callback])
  else
    assert.ok(
      callback.some((allowed) => matches(response.status, allowed)),
      `the callback responded with ${response.status}`,
    )
}

function matches(status: number, allowed: string): boolean {
  return allowed === `${Math.floor(status / 100)}xx` || allowed === String(status)
}

function judgeResponse({ status, body }: Visit): void {
  assert.notEqual(status, 500)
  assert.doesNotMatch(body, /\n\s+at .+:\d+:\d+|node_modules\//)
}

function judgePage({ body }: Visit, { expect: { pageLacks = [] } }: Behaviour): void {
  for (const text of pageLacks) assert.ok(!body.includes(text), `the page holds ${text}`)
}

async function timed(work: Promise<Visit>, { expect: { maxMs = Infinity } }: Behaviour): Promise<Visit> {
  const began = performance.now()
  const visit = await work
  assert.ok(performance.now() - began <= maxMs)
  return visit
}

function secretsOf({ provider: { lastToken } }: HostileWorld): string[] {
  return ['access_token', 'refresh_token', 'id_token'].map((name) => String(lastToken[name]))
}
