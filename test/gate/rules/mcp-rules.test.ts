import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RuleConfig } from '../../../src/config/model/rule.ts'
import { parseNamePattern } from '../../../src/core/patterns.ts'
import type { Admission } from '../../../src/gate/admission.ts'
import { createRouteTable } from '../../../src/gate/rules/route-table.ts'
import type { McpRequest } from '../../../src/http/mcp-request.ts'
import { canonicalTarget } from '../../../src/http/request-target.ts'
import { loadedUpstream } from '../../support/upstream-config.ts'
import { admissionOf, nobody, person } from '../support.ts'
import { rule, upstream } from './configs.ts'

function about(call: readonly string[], method: readonly string[] = []): Pick<RuleConfig, 'mcp'> {
  return { mcp: { call: call.map(parseNamePattern), method: method.map(parseNamePattern) } }
}

const tools = createRouteTable([
  upstream({
    rules: [
      { ...rule('/mcp'), name: 'admins', ...about(['delete_*', 'Drop'], ['resources/*']) },
      { ...rule('/mcp', { methods: ['POST'] }), name: 'everyone' },
    ],
  }),
])

/** The name of the rule for a message, or why there is none. */
function decided(mcp: McpRequest | undefined, path = '/mcp', table = tools): string | undefined {
  const route = table.route('x', 'POST', canonicalTarget(path), undefined, undefined, mcp)
  return route?.fault ?? route?.rule.name
}

test('A rule is for the tools and the methods that it lists', () => {
  assert.equal(decided({ method: 'tools/call', name: 'delete_user' }), 'admins')
  assert.equal(decided({ method: 'tools/call', name: 'Drop' }), 'admins')
  assert.equal(decided({ method: 'resources/read', name: 'file:///a' }), 'admins')
  assert.equal(decided({ method: 'tools/call', name: 'get_user' }), 'everyone')
  assert.equal(decided({ method: 'tools/call', name: 'undelete_user' }), 'everyone')
  assert.equal(decided({ method: 'tools/list' }), 'everyone')
  assert.equal(decided({ method: 'prompts/get', name: 'delete_user' }), 'everyone', 'it calls no tool')
  assert.equal(decided({ method: 'tools/list', name: 'delete_user' }), 'everyone')
})

test('No rule admits a request whose fields do not say which rule is for it', () => {
  assert.match(decided(undefined) ?? '', /^Mcp-Method is missing/)
  assert.equal(decided({ fault: 'two names' }), 'two names')
  for (const message of [
    { method: 'tools/call', name: 'DELETE_user' },
    { method: 'tools/call', name: 'drop' },
    { method: 'Tools/Call', name: 'delete_user' },
    { method: 'Resources/read' },
  ])
    assert.match(decided(message) ?? '', /letter case only$/, JSON.stringify(message))
  // Applications take these paths for the same one.
  assert.equal(decided({ fault: 'two names' }, '/MCP/'), 'two names')
  // The rule is not for this path.
  assert.equal(decided(undefined, '/other'), undefined)
})

test('A rule before the rules about MCP decides without the fields', () => {
  const table = createRouteTable([
    upstream({
      rules: [
        { ...rule('/mcp', { methods: ['GET'] }), name: 'page' },
        { ...rule('/mcp'), name: 'admins', ...about(['delete_*']) },
      ],
    }),
  ])
  const route = (method: string) => table.route('x', method, canonicalTarget('/mcp'))

  assert.deepEqual([route('GET')?.rule.name, route('GET')?.fault], ['page', undefined])
  assert.match(route('DELETE')?.fault ?? '', /^Mcp-Method is missing/)
})

test('A path with two readings is rejected when the rule of only one of them needs the fields', () => {
  const table = createRouteTable([upstream({ rules: [{ ...rule('/a/b'), ...about(['delete_*']) }, rule('/*')] })])
  const route = (mcp?: McpRequest) => table.route('x', 'POST', canonicalTarget('/a%2fb'), undefined, undefined, mcp)

  assert.throws(() => route(), { code: 'ERR_REQUEST_TARGET' })
})

for (const access of ['public', 'signed_in'] as const)
  test(`A rule about MCP of a longer path with access: ${access}, in other letters, is not passed by`, () => {
    const table = createRouteTable([
      upstream({ name: 'rest', rules: [rule('/*')] }),
      upstream({ name: 'tools', path: '/mcp/', rules: [{ ...rule('/*', { access }), ...about(['a']) }] }),
    ])

    assert.match(decided(undefined, '/MCP', table) ?? '', /^Mcp-Method is missing/)
  })

const config =
  loadedUpstream(`{ url: http://127.0.0.1:3000, trusted_origins: [https://app.example.com], cors: {}, rules: [
  { path: /mcp, mcp: { call: ['delete_*'] }, require: { claim: groups, any_of: [admins] } },
  { path: /mcp, mcp: { call: ['get_*'] }, access: public },
  { path: /mcp } ] }`)
const version = { 'mcp-protocol-version': '2026-07-28' }

function admitted(headers: Readonly<Record<string, string>>, groups?: readonly string[], method = 'POST'): Admission {
  const sent = { method, url: '/mcp', headers }
  return admissionOf(config, sent, { identify: () => (groups === undefined ? nobody : person(groups)) })
}

test('The fields of a request decide which rule admits it', () => {
  const call = (name: string) => ({ ...version, 'mcp-method': 'tools/call', 'mcp-name': name })

  assert.equal(admitted(call('delete_user'), ['admins']).kind, 'pass')
  assert.equal(admitted(call('delete_user'), ['staff']).kind, 'forbidden')
  assert.equal(admitted(call('=?base64?ZGVsZXRlX3VzZXI=?='), ['staff']).kind, 'forbidden')
  assert.equal(admitted(call('get_user')).kind, 'pass')
  assert.equal(admitted(call('put_user')).kind, 'unauthorized')
  assert.equal(admitted(call('put_user'), ['staff']).kind, 'pass')
})

test('A request without usable fields is refused, also of those who meet every rule', () => {
  for (const headers of [
    {},
    version,
    { ...version, 'mcp-method': 'tools/call' },
    { 'mcp-method': 'tools/call', 'mcp-name': 'get_user' },
    { ...version, 'mcp-method': 'tools/call', 'mcp-name': 'get_user, delete_user' },
  ])
    assert.throws(() => admitted(headers, ['admins']), { code: 'ERR_MCP_FIELDS', status: 400 })
  const preflight = { origin: 'https://app.example.com', 'access-control-request-method': 'POST' }
  assert.equal(admitted(preflight, undefined, 'OPTIONS').kind, 'preflight', 'a preflight calls nothing')
  assert.throws(() => admitted({}, ['admins'], 'OPTIONS'), { code: 'ERR_MCP_FIELDS' })
})
