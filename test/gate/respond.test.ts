import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RespondConfig } from '../../src/config/model/respond.ts'
import { parseNamePattern } from '../../src/core/patterns.ts'
import type { Identity } from '../../src/gate/identify.ts'
import { requirement, rule, upstream } from './rules/configs.ts'
import { admissionOf, nobody, person, realm } from './support.ts'

// The rules admit a request in the same way, whoever responds to it.

const fixed: RespondConfig = { kind: 'fixed', status: 200, bytes: Buffer.from('staff only'), maxAgeMs: 0, headers: {} }
const maintenance = (...unless: string[]): RespondConfig => ({
  ...{ kind: 'maintenance', retryAfterMs: 60_000 },
  unless: unless.map((group) => requirement('groups', { anyOf: [group] })),
})

/** The kind of the decision for a person with these groups; `undefined`: nobody is signed in. */
function kindFor(groups: readonly string[] | undefined, respond: RespondConfig | undefined, respondsOnly = false) {
  const first = { ...rule('/page', { anyOf: ['staff'] }), ...(respond && { respond }) }
  const rules = [first, rule('/page', { anyOf: ['readers'] })]
  const identify = () => (groups === undefined ? nobody : person(groups))
  return admissionOf(upstream({ rules, respondsOnly }), { url: '/page' }, { identify }).kind
}

test('A response of the gateway is for those who have access', () => {
  assert.equal(kindFor(['staff'], fixed), 'respond')
  assert.equal(kindFor(['readers'], fixed), 'forbidden')
  assert.equal(kindFor(undefined, fixed), 'unauthorized')
})

test('Maintenance lets only those through who meet `unless`, and the next rule decides about them', () => {
  assert.equal(kindFor(['staff', 'readers'], maintenance()), 'maintenance')
  assert.equal(kindFor(['readers'], maintenance('testers')), 'maintenance')
  assert.equal(kindFor(undefined, maintenance('testers')), 'maintenance')
  assert.equal(kindFor(['testers', 'readers'], maintenance('testers')), 'pass')
  assert.equal(kindFor(['testers'], maintenance('testers')), 'forbidden')
  assert.equal(kindFor(['testers', 'readers'], maintenance('testers', 'readers')), 'pass')
  assert.equal(kindFor(['testers', 'staff'], maintenance('testers', 'readers')), 'maintenance')
})

test('An upstream without an application has routes only where the gateway responds', () => {
  assert.equal(kindFor(['staff'], fixed, true), 'respond')
  assert.equal(kindFor(['staff'], undefined, true), 'no_route')
})

test('On an optional path, cookies of the application end with the session of their person', () => {
  const { logout } = upstream()
  const cookies = [{ names: parseNamePattern('SESSION'), paths: [], domains: [] }]
  const shop = {
    ...upstream({ rules: [rule('/**', { access: 'optional' })] }),
    logout: { ...logout, cookies },
  }
  const admissionFor = (identity: Identity) => {
    const admission = admissionOf(shop, { headers: { cookie: 'SESSION=1; theme=dark' } }, { identify: () => identity })
    assert.ok(admission.kind === 'pass')
    return [admission.withheldCookies ?? [], admission.expire?.() ?? []]
  }
  const ended = (isExpired: boolean): Identity => ({
    ...{ kind: 'anonymous', realm, staleCookie: true },
    ended: { isExpired: () => isExpired, noteExpired: () => {}, isElsewhere: false },
  })

  assert.deepEqual(admissionFor(ended(false)), [['SESSION'], ['__Host-gatehouse=; Max-Age=0']])
  assert.deepEqual(admissionFor(ended(true)), [['SESSION'], []])
  assert.deepEqual(admissionFor(nobody), [[], []])
})

test('Only a program is offered Basic, because browsers would ask people for a password', () => {
  const robots = upstream({ rules: [{ ...rule('/**'), serviceAccounts: 'all' }] })
  const offersBasic = (headers: Readonly<Record<string, string>>) => {
    const admission = admissionOf(robots, { headers }, {})
    return 'offersBasic' in admission && admission.offersBasic
  }

  assert.equal(offersBasic({}), true)
  assert.equal(offersBasic({ accept: '*/*' }), true)
  for (const headers of [
    { accept: 'text/html' },
    { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
    { 'sec-fetch-site': 'same-origin' },
    { cookie: 'a=1' },
    { origin: 'https://orders.example.com' },
  ] satisfies Record<string, string>[])
    assert.equal(offersBasic(headers), false, JSON.stringify(headers))
})

test('The sign-in says that the session ended elsewhere only if it did, and the browser had not yet learned it', () => {
  const headers = { accept: 'text/html', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
  const saysSo = (isElsewhere: boolean, isExpired: boolean) => {
    const ended = { isExpired: () => isExpired, noteExpired() {}, isElsewhere }
    const identity: Identity = { kind: 'anonymous', realm, staleCookie: true, ended }
    const admission = admissionOf(upstream(), { headers }, { identify: () => identity })
    assert.ok(admission.kind === 'sign_in')
    return admission.location.includes('ended=elsewhere')
  }

  assert.equal(saysSo(true, false), true)
  assert.equal(saysSo(false, false), false)
  assert.equal(saysSo(true, true), false)
})
