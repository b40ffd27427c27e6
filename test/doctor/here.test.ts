import assert from 'node:assert/strict'
import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { fileFindings } from '../../packages/doctor/secret-files.ts'
import { headerBudgetFinding } from '../../packages/doctor/upstream-claims.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { Claims } from '../../src/core/claims.ts'
import { folderWith } from '../support/command-line.ts'
import { assertUseful, configOf, finding, secrets } from './support.ts'

const yaml = `version: 1
external_url: https://orders.example.com
provider:
  issuer: https://id.example.com
  client_id: orders
  client_secret: { file: client_secret }
session:
  keys: [{ env: SESSION_KEY }]
upstreams: { orders: { url: http://127.0.0.1:3000 } }
`

function filesAbout(t: TestContext, mode: number, configurationMode = 0o644) {
  const folder = folderWith(t, { 'gateway.yaml': yaml, client_secret: `${secrets.CLIENT_SECRET}\n` })
  const file = join(folder, 'gateway.yaml')
  chmodSync(join(folder, 'client_secret'), mode)
  chmodSync(file, configurationMode)
  const { secretFiles } = loadConfig(file, secrets)
  const findings = fileFindings(file, secretFiles)
  assertUseful(findings)
  return findings
}

for (const [mode, level] of [
  [0o400, 'ok'],
  [0o440, 'ok'],
  [0o644, 'warning'],
  [0o660, 'fault'],
  [0o666, 'fault'],
] as const)
  test(`The file of a secret with the mode ${mode.toString(8)}: ${level}`, (t) => {
    const found = finding(filesAbout(t, mode), 'files.secret')

    assert.equal(found.level, level)
    assert.match(found.what, /client_secret \(provider\.client_secret\.file\) has the mode 0\d{3}/)
  })

test('The file of service accounts has hashes, so its finding does not speak of the client', (t) => {
  const accounts = yaml.replace('3000 }', '3000, service_accounts: { file: accounts } }')
  const folder = folderWith(t, { 'gateway.yaml': accounts, client_secret: secrets.CLIENT_SECRET, accounts: '' })
  const file = join(folder, 'gateway.yaml')
  chmodSync(join(folder, 'accounts'), 0o644)
  const { secretFiles } = loadConfig(file, secrets)

  const found = fileFindings(file, secretFiles).find(({ what }) => what.includes('service_accounts'))

  assert.match(found?.why ?? '', /guess the secrets of the service accounts/)
})

test('A configuration file that every user may change is a fault', (t) => {
  assert.equal(finding(filesAbout(t, 0o400, 0o666), 'files.configuration').level, 'fault')
})

function budget(t: TestContext, headers: string, claims?: Claims, listed?: readonly string[]) {
  const { upstreams } = configOf(t, { upstream: `url: http://127.0.0.1:3000\n    headers:\n${headers}` })
  const findings = upstreams.flatMap((upstream) => headerBudgetFinding(upstream, claims, listed))
  assertUseful(findings)
  return findings
}

test('Identity headers of common claims fit the limits of applications', (t) => {
  const headers = "      X-Remote-User: sub\n      X-Email: email\n      X-Name: '{given_name} {family_name}'\n"

  const { level, what } = finding(budget(t, headers), 'upstream.header_budget')

  assert.equal(level, 'ok')
  // The names with their separators, and 255, 254 and 64 + 1 + 64 bytes of values.
  assert.match(what, new RegExp(`an estimated ${13 + 4 + 255 + 7 + 4 + 254 + 6 + 4 + 129} bytes`))
})

test('Headers of lists are a warning by name, and can be measured', (t) => {
  const headers =
    '      X-Remote-User: sub\n      X-Groups: { claim: groups, encode: percent }\n      X-Roles: { claim: roles, max_bytes: 8kb }\n'
  const roles = (count: number) => Array.from({ length: count }, (_, number) => `a-role-with-a-long-name-${number}`)

  const estimated = finding(budget(t, headers), 'upstream.header_budget')
  const few = finding(budget(t, headers, { sub: 'u1', groups: ['staff'] }), 'upstream.header_budget')
  const many = finding(
    budget(t, headers, { sub: 'u1', groups: ['staff'], roles: roles(250) }),
    'upstream.header_budget',
  )
  const tooMany = budget(t, headers, { sub: 'u1', roles: roles(400) })

  assert.equal(estimated.level, 'warning')
  assert.match(estimated.what, /an estimated 12\.3 KiB; the longest are X-Groups, X-Roles/)
  assert.equal(few.level, 'ok')
  assert.equal(
    few.what,
    `identity headers of ${'X-Remote-User: u1\r\n'.length + 'X-Groups: staff\r\n'.length} bytes for these claims: many applications accept 8.0 KiB of headers altogether`,
  )
  assert.equal(many.level, 'warning')
  assert.match(many.what, /the longest is X-Roles/)
  assert.match(finding(tooMany, 'upstream.headers_dropped').what, /X-Roles: longer than 8192 bytes/)
})

test('Headers of a rule and a signed identity count, and the rule with the longest headers decides', (t) => {
  const headers = '      X-Remote-User: sub\n'
  const rules =
    '    rules:\n      - { path: /a/*, headers: { X-Short: email } }\n      - { path: /b/*, headers: { X-Groups: groups, X-Roles: { claim: roles, max_bytes: 8b, too_long: refuse } } }\n'
  const claims = { sub: 'u1', email: 'a@b.example', groups: ['g'.repeat(3000)], roles: ['too-long-a-role'] }

  const estimated = finding(budget(t, headers + rules), 'upstream.header_budget')
  const measured = budget(t, headers + rules, claims)
  const signed = finding(
    budget(t, `${headers}${rules}    signed_identity: { claims: [groups] }\n`, claims),
    'upstream.header_budget',
  )

  const expected = 13 + 4 + 255 + 8 + 4 + 4096 + 7 + 4 + 8
  assert.match(estimated.what, new RegExp(`an estimated ${(expected / 1024).toFixed(1)} KiB`))
  const total = 'X-Remote-User: u1\r\n'.length + 'X-Groups: \r\n'.length + 3000
  assert.match(finding(measured, 'upstream.header_budget').what, new RegExp(`of ${(total / 1024).toFixed(1)} KiB`))
  assert.match(finding(measured, 'upstream.headers_dropped').what, /X-Roles: longer than 8 bytes/)
  assert.equal(signed.level, 'warning')
  assert.match(signed.what, /the longest are X-Groups, X-Gatehouse-Identity/)
})

test('A header whose claim the provider does not list is named, and not counted', (t) => {
  const headers =
    '      X-Remote-User: sub\n      X-Groups: { claim: gruops, max_bytes: 8kb }\n      X-Roles: roles.all\n'

  const ofToken = budget(t, '      X-Issuer: iss\n      X-Client: client_id\n', undefined, ['sub', 'email'])
  assert.deepEqual(
    ofToken.map(({ id }) => id),
    ['upstream.header_budget'],
    'a provider lists neither of these, and both are short',
  )
  assert.match(finding(ofToken, 'upstream.header_budget').what, /of an estimated 2\d\d bytes/)
  const ofCertificate = budget(t, '      X-Client: certificate.cn\n', undefined, ['sub'])
  assert.ok(!ofCertificate.some(({ id }) => id === 'upstream.header_claims'), 'it is the certificate of a program')
  const typo = budget(t, headers, undefined, ['sub', 'email', 'groups'])
  const listed = budget(t, headers, undefined, ['sub', 'gruops'])
  const unknown = budget(t, headers)
  const measured = budget(t, headers, { sub: 'u1', groups: ['staff'] })

  assert.match(finding(typo, 'upstream.header_claims').what, /does not list their claims .*: X-Groups$/)
  assert.equal(finding(typo, 'upstream.header_budget').level, 'ok', 'a list of usual name is counted with 4 KiB')
  for (const counted of [listed, unknown]) {
    assert.match(finding(counted, 'upstream.header_budget').what, /estimated 12\.\d KiB/)
    assert.ok(!counted.some(({ id }) => id === 'upstream.header_claims'))
  }
  assert.equal(
    finding(measured, 'upstream.header_claims').what,
    'omitted, because these claims have no value for them: X-Groups, X-Roles',
  )
})

test('An upstream without identity headers has no header finding', (t) => {
  assert.deepEqual(budget(t, '      {}\n'), [])
})
