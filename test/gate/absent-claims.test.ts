import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Claims } from '../../src/core/claims.ts'
import { systemClock } from '../../src/core/clock.ts'
import { personWith, trialIdentities } from '../../src/explain/trial.ts'
import { createAdmit } from '../../src/gate/admit.ts'
import { createRouteTable } from '../../src/gate/rules/route-table.ts'
import { TrustedProxies } from '../../src/http/forwarded.ts'
import { requestFacts } from '../../src/http/request-facts.ts'
import { configOf } from '../doctor/support.ts'

const upstream = `url: http://127.0.0.1:3000
    headers: { X-User: sub, X-Groups: gruops, X-Phone: phone_number, X-Name: '{given_name} {name}' }
    rules: [{ path: /admin, require: { claim: roles, any_of: [admins] } }]
`

/** The log and the decisions of a gateway for requests of people with these claims. */
function visits(t: TestContext, path: string, people: readonly Claims[]) {
  const config = configOf(t, { upstream })
  const logged: Record<string, unknown>[] = []
  const note = (msg: string, fields?: object) => void logged.push({ msg, ...fields })
  let claims: Claims = {}
  const admit = createAdmit(config, {
    routes: createRouteTable(config.upstreams),
    identify: (_cookie, upstream) => personWith(claims, config).at(upstream),
    clock: systemClock,
    identities: trialIdentities(config),
    isStrict: false,
    log: { debug: note, info: note, warn: note, error: note, announce: note },
  })
  const request = { method: 'GET', url: path, headers: { host: 'orders.example.com' }, socket: {} }
  const facts = requestFacts(request, new TrustedProxies([]), '')
  const admissions = people.map((person) => {
    claims = person
    return admit(facts)
  })
  return { logged, admissions }
}

test('A header whose claim is always absent is logged once', (t) => {
  const jane = { sub: 'jane', name: 'Jane', phone_number: '+1' }

  const { logged } = visits(t, '/', [jane, jane, { sub: 'joe', name: 'Joe' }, { sub: 'ann', name: 'Ann' }])

  assert.deepEqual(
    logged.map(({ msg, upstream, header }) => ({ msg, upstream, header })),
    [{ msg: 'headers.claim_absent', upstream: 'orders', header: 'X-Groups' }],
    'X-Phone has had a value, X-Name one of its claims',
  )
  assert.match(String(logged[0]?.['hint']), /scopes and id_token_claims of the provider/)
})

test('The reason of a rule says when the claim is absent', (t) => {
  const { admissions } = visits(t, '/admin', [{ sub: 'jane' }, { sub: 'joe', roles: ['guests'] }])

  assert.deepEqual(
    admissions.map((admission) => 'why' in admission && admission.why),
    ['roles: the claim is absent', 'roles: holds none of admins'],
  )
})
