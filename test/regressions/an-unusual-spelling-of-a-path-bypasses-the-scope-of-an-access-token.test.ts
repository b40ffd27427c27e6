import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRouteTable } from '../../src/gate/rules/route-table.ts'
import { canonicalTarget } from '../../src/http/request-target.ts'
import { rule, upstream } from '../gate/rules/configs.ts'

test('A path that an application may read as one with another scope is refused', () => {
  const routes = createRouteTable([
    upstream({
      rules: [
        { ...rule('/api/admin/*'), accessTokens: { scopes: ['orders.admin'] } },
        { ...rule('/api/*'), accessTokens: { scopes: [] } },
      ],
    }),
  ])

  for (const path of ['/api/admin%2Fusers', '/api/admin;v=1/users', '/api/admin./users', '/api/x%2F..%2Fadmin/users'])
    assert.throws(() => routes.route('orders.example.com', 'GET', canonicalTarget(path)), {
      code: 'ERR_REQUEST_TARGET',
    })
  assert.notEqual(routes.route('orders.example.com', 'GET', canonicalTarget('/api/group%2Fproject')), undefined)
})

test('A path that an application may read as one without access tokens is refused', () => {
  const routes = createRouteTable([
    upstream({ rules: [{ ...rule('/api/*'), accessTokens: { scopes: [] } }, rule('/**')] }),
  ])

  assert.throws(() => routes.route('orders.example.com', 'GET', canonicalTarget('/api%2Fusers')), {
    code: 'ERR_REQUEST_TARGET',
  })
})
