import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Claims } from '../../src/core/claims.ts'
import { systemClock } from '../../src/core/clock.ts'
import { personWith, trialIdentities } from '../../src/explain/trial.ts'
import { createAdmit } from '../../src/gate/admit.ts'
import { createRouteTable } from '../../src/gate/rules/route-table.ts'
import { TrustedProxies } from '../../src/http/forwarded.ts'
import { requestFacts } from '../../src/http/request-facts.ts'
import { configOf } from '../doctor/support.ts'

const upstream = `url: http://127.0.0.1:3000
    headers: { X-Groups: { claim: groups, max_bytes: 32kb } }
    signed_identity: true
    rules: [{ path: /roles, headers: { X-Roles: { claim: roles, max_bytes: 32kb } } }]
`

test('Identity headers beyond the common limit are logged once for each upstream, without a value', (t) => {
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
    log: { debug() {}, info() {}, warn: note, error: note, announce: note },
  })
  const visit = (url: string, person: Claims) => {
    claims = person
    const request = { method: 'GET', url, headers: { host: 'orders.example.com' }, socket: {} }
    const admission = admit(requestFacts(request, new TrustedProxies([]), ''))
    assert.equal(admission instanceof Promise ? undefined : admission.kind, 'pass')
  }

  visit('/', { sub: 'a', groups: ['staff'] })
  visit('/', { sub: 'b', groups: ['g'.repeat(7_000)] })
  assert.deepEqual(logged, [])
  visit('/roles', { sub: 'c', groups: ['g'.repeat(4_000)], roles: ['r'.repeat(4_000)] })
  visit('/', { sub: 'd', groups: ['g'.repeat(9_000)] })

  assert.deepEqual(
    logged.map(({ msg, upstream: name }) => ({ msg, name })),
    [{ msg: 'headers.over_budget', name: 'orders' }],
  )
  assert.ok(Number(logged[0]?.['bytes']) > 8_192)
  assert.ok(!JSON.stringify(logged).includes('ggg'))
})

test('A header that is left out is logged once for each session record', (t) => {
  const config = configOf(t, {
    upstream: '{ url: http://127.0.0.1:3000, headers: { X-Groups: { claim: groups, max_bytes: 10b } } }',
  })
  const logged: string[] = []
  const [orders] = config.upstreams
  assert.ok(orders)
  const person = personWith({ sub: 'a', groups: ['g'.repeat(20)] }, config).at(orders)
  const admit = createAdmit(config, {
    routes: createRouteTable(config.upstreams),
    identify: () => person,
    clock: systemClock,
    identities: trialIdentities(config),
    isStrict: false,
    log: { debug() {}, info() {}, warn: (msg) => void logged.push(msg), error() {}, announce() {} },
  })
  const request = { method: 'GET', url: '/', headers: { host: 'orders.example.com' }, socket: {} }
  for (let visits = 0; visits < 2; visits += 1) void admit(requestFacts(request, new TrustedProxies([]), ''))

  assert.deepEqual(logged, ['headers.dropped'])
})
