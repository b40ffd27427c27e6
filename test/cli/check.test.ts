import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { check } from '../../src/cli/check.ts'

const settings = `version: 1
external_url: https://orders.example.com
provider:
  issuer: https://id.example.com
  client_id: orders
  client_secret: { env: CLIENT_SECRET }
  claims: { fields: https://id.example.com/claims/fields }
upstreams:
  orders:
    url: http://127.0.0.1:3000
    headers:
      X-Remote-User: sub
      X-Groups: { claim: fields.groups, join: "," }
      X-Room: { claim: fields.room, required: false }
    rules:
      - { path: /static/*, access: public }
      - { path: /api/*, unauthenticated: 401 }
      - { path: /admin/*, require: { claim: fields.groups, any_of: [admins] } }
`

async function checked(t: TestContext, tests: readonly string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-check-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'gateway.yaml')
  writeFileSync(file, `${settings}    tests:\n${tests.map((line) => `      - ${line}\n`).join('')}`)
  const said = { out: '', err: '' }
  const exitCode = await check({
    file,
    env: { CLIENT_SECRET: 'correct horse battery' },
    out: (text) => void (said.out += text),
    err: (text) => void (said.err += text),
  })
  return { exitCode, ...said }
}

test('tests that stand in the file and hold are counted', async (t) => {
  const { exitCode, out } = await checked(t, [
    '{ get: /static/logo.png, expect: pass, headers: { X-Remote-User: null } }',
    '{ get: /orders, expect: sign_in }',
    '{ get: /api/orders, expect: unauthorized }',
    '{ as: { sub: u1, fields: { groups: [staff] } }, get: /admin/, expect: forbidden }',
    '{ as: { sub: u1, fields: { groups: [staff, admins] } }, get: /admin/, expect: pass, headers: { X-Remote-User: u1, X-Groups: "staff,admins", X-Room: null } }',
  ])

  assert.equal(exitCode, 0)
  assert.match(out, /its 5 tests pass/)
})

test('what has to be registered at the provider is said', async (t) => {
  const { out } = await checked(t, ['{ get: /, expect: sign_in }'])

  for (const name of ['callback', 'signed-out', 'backchannel-logout'])
    assert.ok(out.includes(`https://orders.example.com/.gatehouse/${name}`), name)
})

for (const [line, message] of [
  ['{ get: /orders, expect: pass }', 'expected pass, but the outcome is sign_in'],
  [
    '{ as: { sub: u1 }, get: /admin/, expect: pass }',
    /expected pass, but the outcome is forbidden \(.*fields.groups.*\)/,
  ],
  [
    '{ as: { sub: u1 }, get: /orders, expect: pass, headers: { X-Remote-User: u2 } }',
    'expected the header X-Remote-User to be "u2", but it is "u1"',
  ],
  ['{ get: /static/..%2fadmin, expect: pass }', 'request target refused'],
] as const) {
  test(`a test that fails is said, with its place: ${line}`, async (t) => {
    const { exitCode, err } = await checked(t, [line])

    assert.equal(exitCode, 1)
    assert.match(err, /gateway\.yaml:\d+:\d+ {2}test of orders: GET /)
    assert.match(
      err,
      typeof message === 'string' ? new RegExp(message.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')) : message,
    )
  })
}

test('the version that is printed is the package’s', () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }

  assert.ok(readFileSync('src/cli/main.ts', 'utf8').includes(`const version = '${version}'`))
})
