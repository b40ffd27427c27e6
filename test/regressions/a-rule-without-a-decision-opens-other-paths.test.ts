import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { RuleConfig } from '../../src/config/model/rule.ts'
import { parseNamePattern } from '../../src/core/patterns.ts'
import { createRouteTable } from '../../src/gate/rules/route-table.ts'
import { canonicalTarget } from '../../src/http/request-target.ts'
import { requirement, rule, upstream } from '../gate/rules/configs.ts'
import { decide, startDecisionPoint } from '../support/decision-point.ts'
import { startRecordingApplication } from '../support/recording-application.ts'
import { startWorld } from '../support/world.ts'

/** Each setting of a rule that changes what a request may do, with an unusual value. */
const effects: Readonly<Record<string, Partial<RuleConfig>>> = {
  name: { name: 'Styles' },
  access: { access: 'public' },
  unauthenticated: { unauthenticated: '401' },
  require: { require: [requirement('groups', { anyOf: ['staff'] })] },
  authorize_with: { authorizeWith: false },
  device_binding: { needsDeviceBinding: true },
  step_up: { stepUp: { acr_values: ['mfa'] } },
  access_tokens: { accessTokens: { scopes: [] } },
  service_accounts: { serviceAccounts: 'all' },
  client_certificates: { clientCertificates: true },
  keys: { keys: true },
  mode: { mode: 'observe' },
  respond: { respond: { kind: 'maintenance', unless: [], retryAfterMs: 60_000 } },
  headers: { headers: [] },
}

/** The settings that only select the requests of a rule. */
const selecting = ['path', 'methods', 'networks', 'mcp']

test('Each setting of a rule has a decision: whether readings of a path may differ in it', () => {
  const schema = JSON.parse(readFileSync(new URL('../../schemas/gateway.schema.json', import.meta.url), 'utf8')) as {
    readonly definitions: { readonly rule: { readonly properties: object } }
  }
  const settings = Object.keys(schema.definitions.rule.properties)
  assert.deepEqual([...Object.keys(effects), ...selecting].toSorted(), settings.toSorted())
})

for (const [setting, effect] of Object.entries(effects))
  test(`A path that an application may read as one of another rule is rejected: ${setting}`, () => {
    const table = createRouteTable([upstream({ rules: [{ ...rule('/*.css'), ...effect }] })])
    for (const path of ['/admin/x;.css', '/admin/x%3f.css', '/admin/x%23.css', '/admin/x;a=.css', '/a.css;v=1'])
      assert.throws(() => table.route('any', 'GET', canonicalTarget(path)), { code: 'ERR_REQUEST_TARGET' }, path)
  })

for (const setting of selecting)
  test(`Readings may match two rules that differ only in what they select: ${setting}`, () => {
    const mcp = { call: [], method: [parseNamePattern('tools/list')] }
    const selects = { ...(setting === 'methods' && { methods: ['GET'] }), ...(setting === 'mcp' && { mcp }) }
    const rules = [{ ...rule('/*.css'), ...selects }]
    const table = createRouteTable([upstream({ rules })])
    const message = { method: 'tools/list' }
    const found = table.route('any', 'GET', canonicalTarget('/admin/x;.css'), undefined, undefined, message)
    assert.equal(found?.rule, rules[0])
  })

test('A rule without a decision is one for its exact spelling, and protects all spellings', () => {
  const require = [requirement('groups', { anyOf: ['staff'] })]
  const rules = [{ ...rule('/Assets/*'), require, authorizeWith: false as const }]
  const table = createRouteTable([upstream({ rules })])
  const found = (path: string) => table.route('any', 'GET', canonicalTarget(path))?.rule

  assert.equal(found('/Assets/a')?.authorizeWith, false)
  for (const path of ['/assets/a', '/ASSETS/a', '/Assets/../assets/a'])
    assert.deepEqual([found(path)?.authorizeWith, found(path)?.require], [undefined, require], path)
})

test('No path reaches an application unasked because an application may read it as another one', async (t) => {
  const point = await startDecisionPoint(t)
  const application = await startRecordingApplication(t)
  const world = await startWorld(t, {
    upstream: application.url,
    upstreamSettings: `authorize_with: { url: "${point.url}" }
    rules:
      - { path: /*.css, authorize_with: false }
      - { path: /users/*/photo, authorize_with: false }`,
  })
  const jane = world.browser()
  await jane.get(`${world.url}/a.css`)
  point.answer = decide({ decision: false })
  application.seen.length = 0
  const status = async (path: string) => (await jane.fetch(world.url + path)).status

  for (const path of [
    ...['/admin/x', '/admin/x;.css', '/admin/x%3f.css', '/admin/x%23.css', '/admin/x;a=.css', '/users/1%2fadmin/photo'],
    ...['/users/1/PHOTO', '/a.CSS', '/users/1/photo/'],
  ])
    assert.ok([400, 403].includes(await status(path)), path)

  assert.deepEqual(application.seen, [])
  assert.deepEqual([await status('/static/a.css'), await status('/users/1/photo')], [200, 200])
})
