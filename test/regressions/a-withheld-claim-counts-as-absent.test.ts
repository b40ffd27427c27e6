import assert from 'node:assert/strict'
import { test } from 'node:test'
import { overageFindings, withheldFindings } from '../../packages/doctor/upstream-claims.ts'
import { readExplainCall } from '../../src/cli/explain.ts'
import type { HeaderConfig } from '../../src/config/model/header.ts'
import type { Claims as SessionClaims } from '../../src/core/claims.ts'
import { identityHeaders } from '../../src/identity/claim-headers.ts'
import { claimsOfSession } from '../../src/session/record/record.ts'
import { type Claims, jane, page, startBed } from '../advisories/support.ts'
import { configOf, finding } from '../doctor/support.ts'
import { startApi } from '../support/api-world.ts'
import { folderWith, recordingTerminal } from '../support/command-line.ts'

/** What Entra ID sends instead of `groups` to people in more than 200 groups. */
const overage = {
  _claim_names: { groups: 'src1' },
  _claim_sources: { src1: { endpoint: 'https://graph.example.com/groups', access_token: 'secret' } },
}
const who = { iss: 'https://id.example.com', sub: 'jane' }
const joe: Claims = { sub: 'joe' }
const rules = `[
      { path: /none/*, require: { claim: groups, none_of: [suspended] } },
      { path: /not/*, require: { not: { claim: groups, any_of: [suspended] } } },
      { path: /any/*, require: { claim: groups, any_of: [staff] } },
      { path: /either/*, require: { any: [{ claim: groups, none_of: [suspended] }, { claim: vip, equals: 'yes' }] } },
      { path: /observed/*, require: { claim: groups, none_of: [suspended] }, mode: observe } ]`

for (const [source, provider, idToken, userinfo] of [
  ['the ID Token, which groups come from', 'id_token_claims: [groups]', overage, joe],
  ['the ID Token, with hasgroups', 'id_token_claims: [groups]', { hasgroups: true }, joe],
  ['the ID Token, while UserInfo has other groups', 'id_token_claims: [groups]', overage, { ...joe, groups: ['a'] }],
  ['the ID Token, although groups come from UserInfo', '', overage, joe],
  ['UserInfo', '', {}, { ...joe, ...overage }],
  ['UserInfo, although groups come from the ID Token', 'id_token_claims: [groups]', {}, { ...joe, ...overage }],
  ['UserInfo, beside a part of the groups', '', {}, { ...joe, ...overage, groups: ['staff'] }],
] as const)
  test(`A claim that the provider withholds satisfies no requirement: ${source}`, async (t) => {
    const bed = await startBed(t, { rules, provider })
    bed.provider.bend({ idToken })
    const cookie = await bed.signIn(userinfo)

    for (const path of ['/none/a', '/not/a', '/any/a', '/either/a']) {
      const response = await bed.ask(path, { ...page, cookie })
      assert.equal(response.status, 403, path)
      assert.match(response.body, /did not say whether you have access/)
    }
    assert.deepEqual(bed.seen, [])
    const denied = bed.log.filter(({ message }) => message === 'access.denied').map(({ fields }) => fields)
    assert.ok(denied.length > 0)
    for (const { code, reason } of denied) {
      assert.equal(code, 'ERR_CLAIM_WITHHELD')
      assert.match(String(reason), /groups: the provider has withheld the claim .*overage/)
    }
    assert.equal((await bed.ask('/observed/a', { ...page, cookie })).status, 200)
    assert.ok(bed.log.some(({ message }) => message === 'access.would_be_denied'))
    assert.equal((await bed.ask('/other', { ...page, cookie })).status, 200)
  })

test('Groups of UserInfo count although the ID Token has no place for them', async (t) => {
  const bed = await startBed(t, { rules })
  bed.provider.bend({ idToken: overage })
  const cookie = await bed.signIn(jane)

  assert.equal((await bed.ask('/none/a', { ...page, cookie })).status, 200)
  assert.equal((await bed.ask('/any/a', { ...page, cookie })).status, 200)
})

test('A person who joins too many groups loses access at the next refresh', async (t) => {
  const bed = await startBed(t, { rules, session: 'idle_timeout: 3h' })
  const cookie = await bed.signIn(jane)
  assert.equal((await bed.ask('/none/a', { ...page, cookie })).status, 200)

  bed.provider.bend({ response: { id_token: undefined } })
  bed.provider.say({ groups: undefined, ...overage })
  bed.moveClock(3_600_000)

  assert.equal((await bed.ask('/none/a', { ...page, cookie })).status, 403)
  assert.equal((await bed.ask('/any/a', { ...page, cookie })).status, 403)
})

test('A withheld claim is still withheld after a refresh without an ID Token', async (t) => {
  const bed = await startBed(t, { rules, session: 'idle_timeout: 3h', provider: 'id_token_claims: [groups]' })
  bed.provider.bend({ idToken: overage })
  const cookie = await bed.signIn(joe)

  bed.provider.bend({ response: { id_token: undefined } })
  bed.moveClock(3_600_000)

  assert.equal((await bed.ask('/none/a', { ...page, cookie })).status, 403)
})

test('A header of a withheld claim is left out, and a required one denies access', async (t) => {
  const headers = `[
      { path: /role, headers: { X-Role: { claim: groups, map: { suspended: none, '*': user } } } },
      { path: /first, headers: { X-Role: { first_of: [groups, email] } } },
      { path: /reached, headers: { X-Role: { first_of: [email, groups] } } },
      { path: /text, headers: { X-Role: 'user of {groups} {email}' } },
      { path: /basic, headers: { Authorization: { basic: { user: '{email}{groups}', password: { env: CLIENT_SECRET } } } } },
      { path: /required, headers: { X-Role: { claim: groups, required: true } } } ]`
  const bed = await startBed(t, { rules: headers })
  const cookie = await bed.signIn({ sub: 'joe', email: 'joe@example.com', ...overage })

  for (const path of ['/role', '/first', '/text', '/basic']) {
    assert.equal((await bed.ask(path, { ...page, cookie })).status, 200)
    const { 'x-role': role, authorization } = bed.seen.at(-1)?.headers ?? {}
    assert.deepEqual([path, role, authorization], [path, undefined, undefined])
  }
  assert.ok(
    bed.log.some(({ message, fields }) => message === 'headers.dropped' && /withheld/.test(String(fields['headers']))),
  )
  await bed.ask('/reached', { ...page, cookie })
  assert.equal(bed.seen.at(-1)?.headers['x-role'], 'joe@example.com')

  assert.equal((await bed.ask('/required', { ...page, cookie })).status, 403)
  assert.equal(bed.log.findLast(({ message }) => message === 'access.denied')?.fields['code'], 'ERR_CLAIM_WITHHELD')
})

test('An access token that withholds groups satisfies no requirement', async (t) => {
  const world = await startApi(t, {
    rules: '[{ path: /api/*, access_tokens: true, require: { claim: groups, none_of: [suspended] } }]',
  })

  assert.equal((await world.call('/api/a', world.token({ groups: ['staff'] }))).status, 200)
  for (const claims of [overage, { hasgroups: true }])
    assert.equal((await world.call('/api/a', world.token(claims))).status, 403)
})

test('The session keeps that a claim is withheld, under its name there, but no source of it', () => {
  const claims = claimsOfSession({ sub: 'jane', ...overage }, who, undefined, { groups: 'teams' })

  assert.deepEqual(claims, { ...who, _claim_names: { teams: 'withheld' } })
  assert.deepEqual(claimsOfSession({ _claim_names: { sub: 'src1' } }, who), who)
  assert.deepEqual(claimsOfSession({ _claim_names: 'groups' }, who), who)
})

test('explain and embedded tests say that a claim is withheld', async (t) => {
  const yaml = `version: 1
external_url: https://orders.example.com
provider:
  issuer: https://id.example.com
  client_id: orders
  client_secret: { env: CLIENT_SECRET }
  claims: { teams: groups }
upstreams:
  orders:
    url: http://127.0.0.1:3000
    rules: [{ path: /admin/*, require: { claim: teams, none_of: [suspended] } }]
    tests: [{ as: { sub: joe, hasgroups: true }, get: /admin/a, expect: forbidden }]
`
  for (const claims of [overage, { hasgroups: true }, { _claim_names: { teams: 'src1' } }]) {
    const folder = folderWith(t, { 'gateway.yaml': yaml, 'joe.json': JSON.stringify({ sub: 'joe', ...claims }) })
    const call = readExplainCall([
      '--config',
      `${folder}/gateway.yaml`,
      '--as',
      `${folder}/joe.json`,
      'GET',
      '/admin/a',
    ])
    const { terminal, said } = recordingTerminal({ CLIENT_SECRET: 'correct horse battery' })
    assert.ok('carryOut' in call)

    await call.carryOut(terminal)

    assert.match(said.out, /the provider has withheld the claim/)
    assert.match(said.out, /403 .*\n[^]*ERR_CLAIM_WITHHELD/)
  }
})

test('doctor names the withheld claims of a person that rules and headers read', (t) => {
  const config = configOf(t, {
    upstream: `url: http://127.0.0.1:3000
    headers: { X-Groups: groups }
    rules: [{ path: /admin/*, require: { claim: roles, none_of: [suspended] } }]`,
  })
  const [upstream] = config.upstreams
  assert.ok(upstream)
  const hidden = { _claim_names: { groups: 'a', roles: 'a', address: 'a' } }

  const { level, what, todo } = finding(withheldFindings(upstream, hidden), 'upstream.claims_withheld')

  assert.equal(level, 'warning')
  assert.match(what, /withheld groups, roles of/)
  assert.match(todo ?? '', /groups that are assigned/)
  assert.deepEqual(withheldFindings(upstream, { groups: ['a'] }), [])
})

test('doctor says what Entra ID withholds where a rule reads groups', (t) => {
  const rules = (claim: string) => `url: http://127.0.0.1:3000
    rules: [{ path: /admin/*, require: { claim: ${claim}, any_of: [a] } }]`
  const found = (issuer: string, claim: string) => {
    const { providers, upstreams } = configOf(t, { issuer, upstream: rules(claim) })
    return overageFindings(providers[0], upstreams)
  }

  assert.match(
    finding(
      found('https://login.microsoftonline.com/8f1c0a52-4a27-4a0e-9b1c-0d3f6a1e2b3c/v2.0', 'groups'),
      'provider.overage',
    ).what,
    /200/,
  )
  assert.deepEqual(found('https://login.microsoftonline.com/8f1c0a52-4a27-4a0e-9b1c-0d3f6a1e2b3c/v2.0', 'roles'), [])
  assert.deepEqual(found('https://id.example.com', 'groups'), [])
})

test('The value of a map is no default for a claim that is a map', () => {
  const map = new Map([
    ['suspended', 'none'],
    ['*', 'user'],
  ])

  for (const groups of [{ suspended: true }, [{ suspended: true }], [['suspended']]])
    assert.deepEqual(sentHeaders({ changes: { map } }, { groups }), [])
  assert.deepEqual(sentHeaders({ changes: { map } }, { groups: 'staff' }), ['X-Role', 'user'])
})

function sentHeaders(settings: Partial<HeaderConfig>, claims: Claims): readonly string[] {
  const source = { kind: 'claim', path: ['groups'] } as const
  const header = { name: 'X-Role', source, join: ',', encode: 'utf8', maxBytes: 100, tooLong: 'omit', required: false }
  const sent = identityHeaders([{ ...header, ...settings } as HeaderConfig], claims as SessionClaims)
  return 'fields' in sent ? sent.fields : [sent.missing]
}
