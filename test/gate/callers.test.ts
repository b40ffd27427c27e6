import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RuleConfig } from '../../src/config/model/rule.ts'
import type { UpstreamConfig } from '../../src/config/model/upstream.ts'
import { parseClaimPath } from '../../src/core/claims.ts'
import type { Caller } from '../../src/core/credentials.ts'
import type { SessionKey } from '../../src/core/names.ts'
import { parseNamePattern } from '../../src/core/patterns.ts'
import type { Authentication } from '../../src/core/step-up.ts'
import type { Admission } from '../../src/gate/admission.ts'
import type { AdmitParts } from '../../src/gate/context.ts'
import { rule, upstream } from './rules/configs.ts'
import { admissionOf } from './support.ts'

// Requests with credentials of their own: what the rule requires of people, it requires of them.

/** The fields with which each caller proves who it is. */
const credentials: Readonly<Record<Caller, Readonly<Record<string, string>>>> = {
  access_token: { authorization: 'Bearer token' },
  service_account: { authorization: `Basic ${Buffer.from('robot:secret').toString('base64')}` },
  client_certificate: {},
  key: { authorization: `Bearer ghk_${'k'.repeat(64)}` },
}
const callers = Object.keys(credentials) as Caller[]

const accessTokens: NonNullable<UpstreamConfig['accessTokens']> = {
  audience: ['https://api.example.com'],
  types: ['at+jwt'],
  scopes: [],
  check: 'jwt',
  introspectionCacheMs: 0,
  metadata: false,
}

interface Case {
  readonly rule?: Partial<RuleConfig>
  readonly upstream?: Partial<UpstreamConfig>
  readonly groups?: readonly string[]
  readonly scope?: string
  readonly authentication?: Authentication
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly parts?: Partial<AdmitParts>
  /** What the room `tokens` says about the credentials. Absent: they are accepted. */
  readonly identity?: { readonly kind: 'refused'; readonly why: string }
}

/** The decision about a request of a caller, for a rule that accepts it. */
function decide(caller: Caller, { identity, parts, method = 'GET', headers = {}, ...given }: Case = {}): Admission {
  const { groups = ['admins'], scope = '', authentication = {} } = given
  const record = {
    iss: 'https://id.example.com',
    sub: 'robot',
    absolute_expires_at: 1,
    tokens: { access_token: 'token' },
    claims: { sub: 'robot', client_id: 'robot', groups: [...groups], scope },
    authentication,
  }
  const base = { kind: 'accepted', key: 'key', audience: '', record, clockToleranceMs: 30_000 } as const
  const accepted = { ...base, isOver: () => false }
  const session = {
    ...{ key: 'tag:key' as SessionKey, audience: '', version: 1, bytes: 0 },
    record: {
      ...record,
      created_at: 0,
      userinfo_read_at: 0,
      tokens: { access_token: 't', id_token: 'i', obtained_at: 0 },
    },
  }
  const accepts = {
    accessTokens: { scopes: [] },
    serviceAccounts: 'all',
    clientCertificates: true,
    keys: true,
  } as const
  const keys = { forAtMostMs: 1, idleMs: 1, perPerson: 1, require: [], header: 'X-Api-Key' }
  const ofUpstream = { accessTokens, serviceAccounts: { accounts: [], claims: {} }, keys }
  const rules = [{ ...rule('/**'), ...accepts, ...given.rule }]
  const orders = { ...upstream({ ...ofUpstream, rules }), ...given.upstream }
  return admissionOf(
    orders,
    { method, headers: { ...credentials[caller], ...headers } },
    {
      identifyToken: () => identity ?? accepted,
      identifyAccount: () => identity ?? accepted,
      identifyKey: () => identity ?? { ...base, session },
      identifyCertificate: () => (caller === 'client_certificate' ? (identity ?? accepted) : undefined),
      ...parts,
    },
  )
}

/** A decision in two words: its kind, and the code of the refusal. */
const inShort = (admission: Admission) => [admission.kind, 'code' in admission ? admission.code : undefined]

const admins = { require: rule('/**', { anyOf: ['admins'] }).require }
const notAdmins = { require: rule('/**', { noneOf: ['admins'] }).require }
const strong = { stepUp: { acr_values: ['mfa'] } }
const crossSite = { method: 'POST', headers: { 'sec-fetch-site': 'cross-site' } }
const neededHeader: Partial<UpstreamConfig> = {
  headers: [
    {
      ...{ name: 'X-Email', source: { kind: 'claim', path: parseClaimPath('email') }, required: true },
      ...{ join: ',', encode: 'utf8', maxBytes: 1_000, tooLong: 'omit' },
    },
  ],
}
const policy = {
  authorizeWith: { url: 'http://127.0.0.1:9/', timeoutMs: 1, claims: [], authorization: undefined, ca: undefined },
}
const denies = () => ({ kind: 'denied', code: 'ERR_FORBIDDEN', why: 'the policy' }) as const
const signed: Partial<UpstreamConfig> = {
  signedIdentity: { header: 'X-Identity', audience: 'orders', lifetimeMs: 60_000, claims: [], algorithm: 'ES256' },
}

type Outcome = readonly [kind: Admission['kind'], code?: string]

/** For each case: the decision, which is the same for all kinds of callers unless it says so. */
const table: Readonly<Record<string, readonly [Case, Outcome, Partial<Record<Caller, Outcome>>?]>> = {
  'meets the requirement': [{ rule: admins }, ['pass']],
  'lacks the group': [{ rule: admins, groups: ['staff'] }, ['forbidden', 'ERR_FORBIDDEN']],
  'is in an excluded group': [{ rule: notAdmins }, ['forbidden', 'ERR_FORBIDDEN']],
  'lacks the group, where the rule only observes': [
    { rule: { ...admins, mode: 'observe' }, groups: ['staff'] },
    ['pass'],
  ],
  'is authenticated too weakly': [{ rule: strong }, ['caller_refused', 'ERR_STEP_UP']],
  'is authenticated strongly': [{ rule: strong, authentication: { acr: 'mfa' } }, ['pass']],
  'is authenticated too weakly, where the rule only observes': [{ rule: { ...strong, mode: 'observe' } }, ['pass']],
  'is used by a page of another site': [crossSite, ['cross_site'], { access_token: ['pass'], key: ['pass'] }],
  'is not accepted': [
    { identity: { kind: 'refused', why: 'wrong' } },
    ['caller_refused', 'ERR_ACCOUNT_INVALID'],
    {
      access_token: ['caller_refused', 'ERR_TOKEN_INVALID'],
      client_certificate: ['caller_refused', 'ERR_CERTIFICATE_INVALID'],
      key: ['caller_refused', 'ERR_KEY_INVALID'],
    },
  ],
  'has no value for a required header': [{ upstream: neededHeader }, ['forbidden', 'ERR_CLAIM_ABSENT']],
  'is denied by the policy decision point': [
    { upstream: policy, parts: { evaluate: denies } },
    ['forbidden', 'ERR_FORBIDDEN'],
  ],
  'meets no policy decision point': [{ upstream: policy }, ['unavailable', 'ERR_DECISION_UNAVAILABLE']],
  'is to be vouched for without a signing key': [
    { upstream: signed, parts: { identities: { isReady: () => false, of: () => assert.fail('there is no key') } } },
    ['unavailable', 'ERR_STORE_UNAVAILABLE'],
  ],
}

for (const [what, [given, expected, exceptions = {}]] of Object.entries(table))
  for (const caller of callers)
    test(`The decision on a caller with ${caller} that ${what}`, () => {
      const [kind, code] = exceptions[caller] ?? expected

      const admission = decide(caller, given)

      assert.deepEqual(inShort(admission), [kind, code])
      if (admission.kind !== 'pass') return
      assert.equal(admission.caller, caller, 'the upstream must not get its credentials')
      assert.equal(admission.session, caller === 'key' ? 'tag:key' : undefined)
      assert.equal(admission.observed?.caller, given.rule?.mode === 'observe' ? caller : undefined)
    })

for (const [caller, accepts, identify] of [
  ['access_token', 'accessTokens', 'identifyToken'],
  ['service_account', 'serviceAccounts', 'identifyAccount'],
  ['client_certificate', 'clientCertificates', 'identifyCertificate'],
] as const) {
  const without = Object.fromEntries([[accepts, undefined]])

  test(`A rule without ${accepts} does not identify the caller, who is nobody`, () => {
    const parts = { [identify]: () => assert.fail('the credentials do not count here') }

    assert.equal(decide(caller, { rule: without, parts }).kind, 'unauthorized')
  })

  if (accepts !== 'clientCertificates')
    test(`An upstream without ${accepts} refuses the caller, also where the rule accepts it`, () => {
      assert.equal(decide(caller, { upstream: without }).kind, 'caller_refused')
    })
}

for (const [caller, authorization] of [
  ['access_token', 'Bearer one, Bearer two'],
  ['access_token', 'Bearer'],
  ['service_account', 'Basic ?'],
  ['service_account', `Basic ${Buffer.from(':secret').toString('base64')}`],
] as const)
  test(`Malformed credentials are refused, and not looked up: ${authorization}`, () => {
    const fail = () => assert.fail('looked up')
    const parts = { identifyToken: fail, identifyAccount: fail }

    assert.equal(decide(caller, { headers: { authorization }, parts }).kind, 'caller_refused')
  })

const key = `ghk_${'k'.repeat(64)}`
const basic = (secret: string, name = 'any') => `Basic ${Buffer.from(`${name}:${secret}`).toString('base64')}`

test('A key counts as password beside any name, as bearer token, and in the header of the upstream', () => {
  for (const headers of [
    { authorization: basic(key) },
    { authorization: basic(key, '') },
    { authorization: '', 'x-api-key': key },
  ]) {
    let looked: unknown
    const identifyKey: AdmitParts['identifyKey'] = (text) => {
      looked = text
      return { kind: 'refused', why: 'looked up' }
    }
    decide('key', { headers, parts: { identifyKey } })
    assert.equal(looked, key)
  }
})

test('Credentials beside a key in its header are for the application, unless the rule accepts them', () => {
  const tokens = { keys: true, accessTokens: { scopes: [] } } as const
  const accounts = { keys: true, serviceAccounts: 'all' } as const
  const keys = { keys: true } as const
  const fail = () => assert.fail('looked up')
  for (const [accepts, authorization, kind] of [
    [keys, 'Bearer of-the-application', 'pass'],
    [keys, basic('of-the-application'), 'pass'],
    [tokens, basic('of-the-application'), 'pass'],
    [accounts, 'Bearer of-the-application', 'pass'],
    [tokens, 'Bearer token', 'caller_refused'],
    [accounts, basic('secret', 'robot'), 'caller_refused'],
  ] as const) {
    const given = { ...rule('/**'), accessTokens: undefined, serviceAccounts: undefined, ...accepts }
    const parts = { identifyToken: fail, identifyAccount: fail, ...(kind !== 'pass' && { identifyKey: fail }) }
    const headers = { authorization, 'x-api-key': key }
    assert.equal(decide('key', { rule: given as object, headers, parts }).kind, kind, authorization)
  }
})

test('A key decides alone: several, malformed ones, and rules without keys get 401', () => {
  const fail = () => assert.fail('looked up')
  const parts = { identifyKey: fail, identify: fail, identifyToken: fail, identifyAccount: fail }
  const cases: readonly Case[] = [
    { headers: { authorization: `Bearer ${key}`, 'x-api-key': key } },
    { headers: { authorization: 'Bearer', 'x-api-key': 'x' } },
    { headers: { authorization: `Bearer ${key}` }, rule: { keys: undefined } as object },
    { headers: { authorization: basic(key) }, rule: { keys: undefined } as object },
    { headers: { authorization: '', 'x-api-key': key }, rule: { keys: undefined } as object },
    { headers: { authorization: `Bearer ${key}` }, upstream: { keys: undefined } },
    {
      headers: { authorization: `Bearer ${key}, Bearer ${key}` },
      rule: { accessTokens: undefined, serviceAccounts: undefined } as object,
    },
  ]
  for (const given of cases) {
    const admission = decide('key', { ...given, parts })
    assert.deepEqual(inShort(admission), ['caller_refused', 'ERR_KEY_INVALID'], JSON.stringify(given))
  }
})

test('A browser that repeats a key as Basic credentials must not act for a page of another site', () => {
  const headers = { ...crossSite.headers, authorization: basic(key) }

  assert.equal(decide('key', { ...crossSite, headers }).kind, 'cross_site')
})

test('A key is bound to no device, also where the rule only observes', () => {
  for (const given of [
    { rule: { needsDeviceBinding: true, mode: 'observe' } },
    { upstream: { needsDeviceBinding: true } },
  ] as const)
    assert.deepEqual(inShort(decide('key', given)), ['forbidden', 'ERR_DEVICE_BINDING'])
})

test('keys.require of the upstream holds for each request with a key', () => {
  const keys = { forAtMostMs: 1, idleMs: 1, perPerson: 1, require: admins.require }

  assert.equal(decide('key', { upstream: { keys } }).kind, 'pass')
  assert.deepEqual(inShort(decide('key', { upstream: { keys }, groups: [] })), ['forbidden', 'ERR_FORBIDDEN'])
})

test('A token needs the scopes of the upstream and of the rule, in "scope" or "scp"', () => {
  const needs = {
    upstream: { accessTokens: { ...accessTokens, scopes: ['read'] } },
    rule: { accessTokens: { scopes: ['write'] } },
  }

  for (const [scope, kind] of [
    ['read write', 'pass'],
    ['read', 'forbidden'],
    ['write', 'forbidden'],
    ['', 'forbidden'],
    ['reader writer', 'forbidden'],
  ] as const)
    assert.equal(decide('access_token', { ...needs, scope }).kind, kind, scope)
})

test('A rule that lists service accounts admits no others', () => {
  const kindFor = (...serviceAccounts: string[]) => decide('service_account', { rule: { serviceAccounts } }).kind

  assert.equal(kindFor('robot'), 'pass')
  assert.equal(kindFor('other', 'robot'), 'pass')
  assert.equal(kindFor('other'), 'forbidden')
  assert.equal(kindFor(), 'forbidden')
})

test('The upstream does not get cookies that may belong to another person than the credentials', () => {
  const { logout } = upstream()
  const cookies = [{ names: parseNamePattern('SESSION'), paths: [], domains: [] }]
  const given = {
    upstream: { logout: { ...logout, cookies } },
    headers: { cookie: 'SESSION=1; theme=dark' },
  }

  for (const caller of callers) {
    const admission = decide(caller, given)
    assert.ok(admission.kind === 'pass')
    assert.deepEqual(admission.withheldCookies, ['SESSION'])
  }
})
