import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ProviderConfig } from '../../src/config/model/provider.ts'
import { systemClock } from '../../src/core/clock.ts'
import type { SessionKey } from '../../src/core/names.ts'
import { parsePathPattern } from '../../src/core/patterns.ts'
import type { Authentication } from '../../src/core/step-up.ts'
import { trialIdentities } from '../../src/explain/trial.ts'
import type { Admission } from '../../src/gate/admission.ts'
import { createAdmit } from '../../src/gate/admit.ts'
import { type Identity, signedIn } from '../../src/gate/identify.ts'
import { createRouteTable } from '../../src/gate/rules/route-table.ts'
import { TrustedProxies } from '../../src/http/forwarded.ts'
import { requestFacts } from '../../src/http/request-facts.ts'
import { rule, unbound, upstream } from './rules/configs.ts'

// The decision as a table: each rule, for each identity and each kind of request. A line that is
// missing here has not been decided.

const provider = {} as ProviderConfig
const realm = {
  prefix: '/.gatehouse/',
  clockToleranceMs: 30_000,
  cookie: { expireAll: () => ['__Host-gatehouse=; Max-Age=0'], expiry: { wherever: () => [] }, isOfFrame: () => false },
}

const orders = upstream({
  logout: [parsePathPattern('/logout')],
  rules: [
    rule('/public/**', { access: 'public' }),
    rule('/optional/**', { access: 'optional' }),
    rule('/api/**', { unauthenticated: '401' }),
    rule('/always/**', { unauthenticated: 'redirect' }),
    rule('/admin/**', { anyOf: ['admins'] }),
    { ...rule('/strong/**', { anyOf: ['admins'] }), stepUp: { acr_values: ['mfa'] } },
    rule('/**'),
  ],
})

const session = (groups: readonly string[], authentication?: Authentication): Identity =>
  signedIn(
    {
      key: 'tag:jane' as SessionKey,
      audience: '',
      version: 1,
      bytes: 100,
      record: {
        iss: 'https://id.example.com',
        sub: 'jane',
        created_at: 0,
        absolute_expires_at: 1,
        tokens: { access_token: 'a', id_token: 'i', obtained_at: 0 },
        claims: { sub: 'jane', groups: [...groups] },
        userinfo_read_at: 0,
        ...(authentication && { authentication }),
      },
    },
    realm,
  )

const identities = {
  'signed in': session(['staff']),
  'signed in as an administrator': session(['admins']),
  'signed in strongly as an administrator': session(['admins'], { acr: 'mfa' }),
  'without a session': { kind: 'anonymous', realm, staleCookie: false },
  'with the cookie of an ended session': { kind: 'anonymous', realm, staleCookie: true },
  'while sessions cannot be read': { kind: 'unavailable', code: 'ERR_STORE_UNAVAILABLE', why: 'Redis is away' },
} as const satisfies Record<string, Identity>

const page = { accept: 'text/html', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
const requests = {
  page: { method: 'GET', headers: { ...page, 'sec-fetch-site': 'none' } },
  script: { method: 'GET', headers: { accept: 'application/json', 'sec-fetch-mode': 'cors' } },
  frame: { method: 'GET', headers: { ...page, 'sec-fetch-dest': 'iframe' } },
  'form of another site': { method: 'POST', headers: { ...page, 'sec-fetch-site': 'cross-site' } },
  'WebSocket of another site': {
    method: 'GET',
    headers: { connection: 'Upgrade', upgrade: 'websocket', origin: 'https://evil.example' },
  },
} as const

type Row = readonly [path: string, who: keyof typeof identities, ...kinds: readonly Admission['kind'][]]

/** The columns are the requests, in their order above. */
const table: readonly Row[] = [
  ['/public/a', 'signed in', 'pass', 'pass', 'pass', 'pass', 'pass'],
  ['/public/a', 'without a session', 'pass', 'pass', 'pass', 'pass', 'pass'],
  ['/public/a', 'with the cookie of an ended session', 'pass', 'pass', 'pass', 'pass', 'pass'],
  ['/public/a', 'while sessions cannot be read', 'pass', 'pass', 'pass', 'pass', 'pass'],
  ['/optional/a', 'signed in', 'pass', 'pass', 'pass', 'cross_site', 'cross_site'],
  ['/optional/a', 'without a session', 'pass', 'pass', 'pass', 'pass', 'pass'],
  ['/optional/a', 'with the cookie of an ended session', 'pass', 'pass', 'pass', 'pass', 'pass'],
  ['/optional/a', 'while sessions cannot be read', 'pass', 'pass', 'pass', 'pass', 'pass'],
  ['/a', 'signed in', 'pass', 'pass', 'pass', 'cross_site', 'cross_site'],
  ['/a', 'without a session', 'sign_in', 'unauthorized', 'unauthorized', 'sign_in', 'unauthorized'],
  ['/a', 'with the cookie of an ended session', 'sign_in', 'unauthorized', 'unauthorized', 'sign_in', 'unauthorized'],
  ['/a', 'while sessions cannot be read', 'unavailable', 'unavailable', 'unavailable', 'unavailable', 'unavailable'],
  ['/api/a', 'signed in', 'pass', 'pass', 'pass', 'cross_site', 'cross_site'],
  ['/api/a', 'without a session', 'unauthorized', 'unauthorized', 'unauthorized', 'unauthorized', 'unauthorized'],
  ['/always/a', 'without a session', 'sign_in', 'sign_in', 'unauthorized', 'sign_in', 'sign_in'],
  ['/admin/a', 'signed in', 'forbidden', 'forbidden', 'forbidden', 'cross_site', 'cross_site'],
  ['/admin/a', 'signed in as an administrator', 'pass', 'pass', 'pass', 'cross_site', 'cross_site'],
  ['/admin/a', 'without a session', 'sign_in', 'unauthorized', 'unauthorized', 'sign_in', 'unauthorized'],
  ['/strong/a', 'signed in', 'forbidden', 'forbidden', 'forbidden', 'cross_site', 'cross_site'],
  ['/strong/a', 'signed in as an administrator', 'sign_in', 'unauthorized', 'unauthorized', 'cross_site', 'cross_site'],
  ['/strong/a', 'signed in strongly as an administrator', 'pass', 'pass', 'pass', 'cross_site', 'cross_site'],
  ['/strong/a', 'without a session', 'sign_in', 'unauthorized', 'unauthorized', 'sign_in', 'unauthorized'],
  ['/logout', 'signed in', 'sign_out', 'sign_out', 'sign_out', 'sign_out', 'sign_out'],
  ['/logout', 'without a session', 'sign_out', 'sign_out', 'sign_out', 'sign_out', 'sign_out'],
]

for (const [path, who, ...kinds] of table)
  test(`The decision on ${path} for a person ${who} depends on the kind of the request`, () => {
    const admit = createAdmit(
      { upstreams: [orders], reservedPrefix: '/.gatehouse/', session: unbound, providers: [] },
      {
        routes: createRouteTable([orders]),
        identify: () => identities[who],
        clock: systemClock,
        identities: trialIdentities({ externalUrl: new URL('https://orders.example.com'), providers: [provider] }),
        isStrict: false,
        log: { debug() {}, info() {}, warn() {}, error() {}, announce() {} },
      },
    )
    const decided = Object.entries(requests).map(([kind, { method, headers }]) => {
      const received = { method, url: path, headers: { host: 'orders.example.com', ...headers }, socket: {} }
      const admission = admit(requestFacts(received, new TrustedProxies([]), ''))
      assert.ok(!(admission instanceof Promise), 'the decision needs no promise')
      return [kind, admission.kind]
    })

    assert.deepEqual(
      decided,
      Object.keys(requests).map((kind, at) => [kind, kinds[at]]),
    )
  })

test('The session of a frame never has access where device_binding is required, not even after its sign-in', () => {
  const bound = upstream({ rules: [{ ...rule('/**'), needsDeviceBinding: true }] })
  const clock = { now: () => 30_000 }
  const kindFor = (cookie: string) => {
    const isOfFrame = (header: string | undefined) => header?.includes('frame') === true
    const sender = session(['staff'])
    const admit = createAdmit(
      { upstreams: [bound], reservedPrefix: '/.gatehouse/', session: unbound, providers: [] },
      {
        routes: createRouteTable([bound]),
        identify: () =>
          sender.kind === 'signed_in'
            ? { ...sender, realm: { ...realm, cookie: { ...realm.cookie, isOfFrame } } }
            : sender,
        clock,
        identities: trialIdentities({ externalUrl: new URL('https://orders.example.com'), providers: [provider] }),
        isStrict: false,
        log: { debug() {}, info() {}, warn() {}, error() {}, announce() {} },
      },
    )
    const received = { method: 'GET', url: '/', headers: { host: 'orders.example.com', cookie }, socket: {} }
    const admission = admit(requestFacts(received, new TrustedProxies([]), ''))
    return admission instanceof Promise ? 'promise' : admission.kind
  }

  // A browser outside of frames registers its key within a minute.
  assert.equal(kindFor('__Host-gatehouse=1'), 'pass')
  assert.equal(kindFor('__Host-gatehouse-for-frame=1'), 'forbidden')
})

test('A host without an upstream has no route for anybody', () => {
  const upstreams = [upstream({ hosts: ['orders.example.com'] })]
  const admit = createAdmit(
    { upstreams, reservedPrefix: '/.gatehouse/', session: unbound, providers: [] },
    {
      routes: createRouteTable(upstreams),
      identify: () => assert.fail('the identity is not needed'),
      clock: systemClock,
      identities: trialIdentities({ externalUrl: new URL('https://orders.example.com'), providers: [provider] }),
      isStrict: false,
      log: { debug() {}, info() {}, warn() {}, error() {}, announce() {} },
    },
  )
  const received = { method: 'GET', url: '/', headers: { host: 'stock.example.com' }, socket: {} }

  const admission = admit(requestFacts(received, new TrustedProxies([]), ''))

  assert.ok(!(admission instanceof Promise))
  assert.equal(admission.kind, 'no_route')
})
