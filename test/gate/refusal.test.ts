import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Caller } from '../../src/core/credentials.ts'
import { auditCaller, auditDenial, auditObserved } from '../../src/gate/refusal.ts'
import { RequestRecord } from '../../src/observe/request-record.ts'
import { rule, upstream } from './rules/configs.ts'
import { person } from './support.ts'

const orders = upstream({ name: 'orders' })
const robot = {
  record: {
    ...{ iss: 'https://id.example.com', sub: 'robot', absolute_expires_at: 1, tokens: { access_token: 'token' } },
    claims: { sub: 'robot', client_id: 'robots' },
  },
}
const ofRequest = {
  code: 'ERR_FORBIDDEN',
  reason: 'why',
  upstream: 'orders',
  method: 'GET',
  path: '/a',
  asked_by: undefined,
}
const ofPerson = {
  ...{ session: 'tag:jane', iss: 'https://id.example.com', sub: 'jane', sid: undefined },
  ...{ rule: 'default', rule_name: undefined, ...ofRequest },
}
const ofToken = { iss: 'https://id.example.com', sub: 'robot', ...ofRequest, client_id: 'robots' }

/** Whose request, the former name of the event about it, and what the event says. */
const table: readonly (readonly [Caller | undefined, string, object])[] = [
  [undefined, 'access', ofPerson],
  ['access_token', 'token', ofToken],
  ['service_account', 'service_account', { account: 'robots', ...ofRequest }],
  ['client_certificate', 'client_certificate', { subject: 'robot', ...ofRequest }],
]

/** An event has these as absent fields. */
const unnamed = { iss: undefined, sub: undefined, account: undefined, subject: undefined }

for (const [caller, formerly, fields] of table) {
  const events: unknown[] = []
  const audit = { record: (...event: unknown[]) => void events.push(event) }
  const record = Object.assign(new RequestRecord('GET', 'r-1', { ended() {} }), { path: '/a' })
  const jane = person()
  assert.ok(jane.kind === 'signed_in')
  const denial = {
    ...({ code: 'ERR_FORBIDDEN', why: 'why' } as const),
    ...{ upstream: orders, rule: rule('/**'), principal: caller === undefined ? jane : robot, caller },
  }

  test(`The audit log names who was denied, and why: ${caller ?? 'a signed-in person'}`, () => {
    auditDenial(audit, record, denial)
    auditObserved(audit, record, denial)

    const named = (outcome: string) =>
      caller === undefined ? fields : { ...unnamed, caller, ...fields, formerly: `${formerly}.${outcome}` }
    const [subject, verb] = caller === undefined ? ['access', 'denied'] : ['caller', 'refused']
    assert.deepEqual(events, [
      [`${subject}.${verb}`, named('refused'), record.cause],
      [`${subject}.would_be_${verb}`, named('would_be_refused'), record.cause],
    ])
    assert.deepEqual([record.upstream, record.caller], ['orders', caller])
  })
}

for (const [caller, code, named] of [
  ['access_token', 'ERR_TOKEN_INVALID', {}],
  ['service_account', 'ERR_ACCOUNT_INVALID', { account: 'robots' }],
  ['client_certificate', 'ERR_CERTIFICATE_INVALID', { subject: 'CN=robot' }],
] as const)
  test(`The audit log says which credentials were refused: ${caller}`, () => {
    const events: unknown[] = []
    const audit = { record: (...event: unknown[]) => void events.push(event) }
    const record = Object.assign(new RequestRecord('GET', 'r-1', { ended() {} }), { path: '/a' })
    const refusal = { kind: 'caller_refused', caller, code, why: 'why', upstream: orders } as const

    auditCaller(audit, record, { ...refusal, ...named })

    const formerly = `${caller.replace('access_', '')}.refused`
    const fields = { ...unnamed, caller, ...named, ...ofRequest, code, formerly }
    assert.deepEqual(events, [['caller.refused', fields, record.cause]])
    assert.deepEqual([record.upstream, record.caller], ['orders', caller])
  })
