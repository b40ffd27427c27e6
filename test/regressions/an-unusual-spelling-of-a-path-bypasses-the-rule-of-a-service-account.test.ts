import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRouteTable } from '../../src/gate/rules/route-table.ts'
import { canonicalTarget } from '../../src/http/request-target.ts'
import { rule, upstream } from '../gate/rules/configs.ts'

test('A path that an application may read as one of other service accounts is refused', () => {
  for (const other of [{ serviceAccounts: 'all' } as const, {}]) {
    const routes = createRouteTable([
      upstream({
        rules: [
          { ...rule('/export/admin/*'), serviceAccounts: ['admin'] },
          { ...rule('/export/*'), ...other },
        ],
      }),
    ])

    for (const path of ['/export/admin%2Fusers', '/export/admin;v=1/users', '/export/x%2F..%2Fadmin/users'])
      assert.throws(() => routes.route('orders.example.com', 'GET', canonicalTarget(path)), {
        code: 'ERR_REQUEST_TARGET',
      })
  }
})
