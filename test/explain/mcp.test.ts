import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { loadConfig } from '../../src/config/load.ts'
import type { GatewayConfig } from '../../src/config/model/gateway.ts'
import { explain } from '../../src/explain/decision.ts'
import { failingTests } from '../../src/explain/embedded-tests.ts'
import { personWith } from '../../src/explain/trial.ts'
import { folderWith } from '../support/command-line.ts'
import { formatDiagnostics } from '../support/diagnostics.ts'
import { secrets } from '../support/world.ts'

function configWith(t: TestContext, tests: string): GatewayConfig {
  const yaml = `version: 1
external_url: https://tools.example.com
provider: { issuer: https://id.example.com, client_id: tools, client_secret: { env: CLIENT_SECRET } }
upstreams:
  tools:
    path: /mcp
    url: http://127.0.0.1:8000
    authorize_with: { url: http://127.0.0.1:1/access/v1/evaluation, claims: [groups] }
    rules:
      - { path: /mcp, mcp: { call: ['delete_*'], method: ['resources/*'] }, require: { claim: groups, any_of: [admins] } }
      - { path: /mcp }
    tests: ${tests}
`
  const loaded = loadConfig(`${folderWith(t, { 'gateway.yaml': yaml })}/gateway.yaml`, secrets)
  assert.ok(loaded.ok, loaded.ok ? '' : formatDiagnostics(loaded.diagnostics))
  return loaded.config
}

test('A test in the file calls a tool by its name, or sends a method', (t) => {
  const as = 'as: { sub: zoe, groups: [staff] }, post: /mcp'
  const failures = (test: string) => failingTests(configWith(t, `[${test}]`)).map(({ message }) => message)

  assert.deepEqual(failures(`{ ${as}, mcp: delete_user, expect: forbidden }`), [])
  assert.deepEqual(failures(`{ ${as}, mcp: get_user, expect: pass }`), [])
  assert.deepEqual(failures(`{ ${as}, mcp: resources/list, expect: forbidden }`), [])
  assert.deepEqual(failures(`{ ${as}, mcp: tools/list, expect: pass }`), [])
  assert.match(
    failures(`{ ${as}, mcp: delete_user, expect: pass }`).join(),
    /expected pass, but the outcome is forbidden/,
  )
  assert.match(failures(`{ ${as}, expect: pass }`).join(), /Mcp-Method is missing/)
})

test('explain shows the message, the condition of the rule, and what a policy decision point is told', (t) => {
  const config = configWith(t, '[]')
  const explained = (name: string, groups: readonly string[] = ['staff']) => {
    const fields = ['MCP-Protocol-Version', '2026-07-28', 'Mcp-Method', 'tools/call', 'Mcp-Name', name]
    const rawHeaders = ['Host', 'tools.example.com', ...fields]
    const who = personWith({ sub: 'zoe', groups }, config)
    return explain({ method: 'POST', target: '/mcp', rawHeaders, peer: undefined }, who, config)
  }
  const stepsOf = (...args: Parameters<typeof explained>) =>
    Object.fromEntries(explained(...args).steps.map(({ name, text }) => [name, text]))

  const steps = stepsOf('delete_user', ['admins'])

  assert.equal(steps['mcp'], 'tools/call delete_user')
  assert.match(steps['rule'] ?? '', /\/mcp for MCP calls of delete_\* and methods resources\/\* requires a sign-in/)
  assert.match(steps['authorize_with'] ?? '', /"mcp":\{"method":"tools\/call","name":"delete_user"\}\}/)
  assert.equal(stepsOf('get_user')['rule']?.includes('MCP'), false)
  const refused = explained('get_user, delete_user')
  assert.deepEqual([refused.decision.outcome, refused.decision.code], ['refused', 'ERR_MCP_FIELDS'])
  assert.match(refused.steps.find(({ name }) => name === 'mcp')?.text ?? '', /^Mcp-Name is missing, repeated/)
})

test('A policy decision point is told nothing about a message whose fields are not reliable', (t) => {
  const config = configWith(t, '[]')
  const rawHeaders = ['Host', 'tools.example.com', 'Mcp-Method', 'tools/call', 'Mcp-Name', 'get_user']
  const open = { ...config, upstreams: config.upstreams.map((each) => ({ ...each, rules: each.rules.slice(1) })) }

  const { steps } = explain(
    { method: 'POST', target: '/mcp', rawHeaders, peer: undefined },
    personWith({ sub: 'zoe' }, open),
    open,
  )

  assert.match(steps.find(({ name }) => name === 'authorize_with')?.text ?? '', /"credentials":"session"\}\}/)
})
