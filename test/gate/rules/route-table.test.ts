import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RuleConfig } from '../../../src/config/model/rule.ts'
import { AddressSet } from '../../../src/core/addresses.ts'
import { parsePathPattern } from '../../../src/core/patterns.ts'
import { createRouteTable, type RouteTable } from '../../../src/gate/rules/route-table.ts'
import { canonicalTarget } from '../../../src/http/request-target.ts'
import { rule, upstream } from './configs.ts'

/** `METHOD https://host/path` → `upstream: rule`. */
function routeOf(table: RouteTable, request: string): string | undefined {
  const [method = '', url = ''] = request.split(' ')
  const target = canonicalTarget(url)
  const route = table.route(target.authority ?? '', method, target)
  return route && `${route.upstream.name}: ${route.rule.path.text}${route.isLogout ? ' (logout)' : ''}`
}

test('An upstream with the host comes before one for any host, and a longer path before a shorter one', () => {
  const table = createRouteTable([
    upstream({ name: 'rest' }),
    upstream({ name: 'hr', path: '/hr/' }),
    upstream({ name: 'wages', path: '/hr/wages/' }),
    upstream({ name: 'shop', hosts: ['shop.example', 'www.shop.example'], path: '/' }),
    upstream({ name: 'admin', hosts: ['admin.example'], path: '/deep/er/' }),
  ])

  assert.equal(routeOf(table, 'GET http://x/'), 'rest: /*')
  assert.equal(routeOf(table, 'GET http://x/hr'), 'hr: /*')
  assert.equal(routeOf(table, 'GET http://x/hr/x'), 'hr: /*')
  assert.equal(routeOf(table, 'GET http://x/hrx'), 'rest: /*')
  assert.equal(routeOf(table, 'GET http://x/hr/wages/1'), 'wages: /*')
  assert.equal(routeOf(table, 'GET http://www.shop.example/hr/wages/1'), 'shop: /*')
  assert.equal(routeOf(table, 'GET http://admin.example/deep/er/x'), 'admin: /*')
  assert.equal(routeOf(table, 'GET http://admin.example/hr/x'), 'hr: /*')
})

test('A wildcard means exactly one label, and comes after an upstream with the host', () => {
  const table = createRouteTable([
    upstream({ name: 'rest', path: '/rest/' }),
    upstream({ name: 'apps', hosts: ['*.apps.example'] }),
    upstream({ name: 'all', hosts: ['*.example.com'] }),
    upstream({ name: 'wiki', hosts: ['wiki.apps.example'], path: '/wiki/' }),
  ])
  const at = (host: string, path = '/') => table.route(host, 'GET', canonicalTarget(path))?.upstream.name

  assert.equal(at('notes.apps.example'), 'apps')
  assert.equal(at('xn--bcher-kva.apps.example'), 'apps')
  assert.equal(at('wiki.apps.example', '/wiki/a'), 'wiki')
  assert.equal(at('wiki.apps.example'), 'apps')
  assert.equal(at('notes.apps.example', '/rest/a'), 'apps')
  assert.equal(at('other.example', '/rest/a'), 'rest')
  for (const host of [
    ...['apps.example', '.apps.example', 'a.b.apps.example', 'xapps.example', 'a.*.apps.example'],
    ...[`${'a'.repeat(64)}.apps.example`, 'a..apps.example', '[::1]', '', 'a.apps.example.'],
  ])
    assert.equal(at(host), undefined, host)
})

test('Without an upstream for the host and path there is no route', () => {
  const table = createRouteTable([upstream({ hosts: ['a.example'] }), upstream({ hosts: ['b.example'], path: '/b/' })])

  assert.equal(routeOf(table, 'GET http://c.example/'), undefined)
  assert.equal(routeOf(table, 'GET http://b.example/x'), undefined)
  assert.equal(routeOf(createRouteTable([]), 'GET http://b.example/x'), undefined)
})

test('The first rule that matches path and method applies; without a matching rule, a sign-in is required', () => {
  const rules = [
    rule('/static/*', { access: 'public', methods: ['GET'] }),
    rule('/admin/*', { methods: ['POST'], anyOf: ['admins'] }),
    rule('/admin/*', { anyOf: ['readers'] }),
    rule('/*/edit', { anyOf: ['editors'] }),
    rule('/admin/late', { access: 'public' }),
  ]
  const table = createRouteTable([upstream({ rules })])
  const ruleOf = (method: string, path: string) => table.route('x', method, canonicalTarget(path))?.rule

  assert.equal(ruleOf('GET', '/static/a/b.css'), rules[0])
  assert.equal(ruleOf('HEAD', '/static'), rules[0])
  assert.equal(ruleOf('POST', '/admin/x'), rules[1])
  assert.equal(ruleOf('GET', '/admin'), rules[2])
  assert.equal(ruleOf('GET', '/admin/late'), rules[2])
  assert.equal(ruleOf('PUT', '/orders/edit'), rules[3])
  for (const [method, path] of [
    ['POST', '/static/a'],
    ['get', '/static/a'],
    ['GET', '/staticX'],
    ['GET', '/Static/a'],
    ['GET', '//edit'],
  ] as const) {
    const found = ruleOf(method, path)
    assert.deepEqual([found?.access, found?.unauthenticated, found?.require], ['signed_in', 'auto', []], path)
  }
})

test('A rule that protects a path ignores letter case and a slash at the end; a rule that opens a path does not', () => {
  const rules = [
    rule('/Admin/*', { anyOf: ['admins'] }),
    rule('/reports', { anyOf: ['readers'] }),
    rule('/files/', { anyOf: ['keepers'] }),
    rule('/open', { access: 'public' }),
    rule('/Maybe/*', { access: 'optional' }),
  ]
  const table = createRouteTable([upstream({ rules, logout: [parsePathPattern('/log/Out')] })])
  const ruleOf = (path: string) => {
    const found = table.route('x', 'GET', canonicalTarget(path))
    return found?.isLogout ? 'logout' : found?.rule.path.text
  }

  for (const path of ['/admin', '/ADMIN/', '/aDmIn/x', '/%41dmin']) assert.equal(ruleOf(path), '/Admin/*', path)
  for (const path of ['/reports', '/reports/', '/Reports', '/REPORTS/']) assert.equal(ruleOf(path), '/reports', path)
  for (const path of ['/files', '/files/', '/FILES']) assert.equal(ruleOf(path), '/files/', path)
  for (const path of ['/log/out', '/LOG/OUT', '/log/out/']) assert.equal(ruleOf(path), 'logout', path)
  assert.deepEqual([ruleOf('/open'), ruleOf('/Maybe/x')], ['/open', '/Maybe/*'])
  for (const path of ['/Open', '/open/', '/maybe/x', '/reports/x', '/filesx', '/'])
    assert.equal(ruleOf(path), '/*', path)
})

test('A logout link of the application is recognized with every method but OPTIONS, also with parameters', () => {
  const logout = [parsePathPattern('/logout'), parsePathPattern('/account/*')]
  const table = createRouteTable([upstream({ path: '/', logout, rules: [rule('/*', { access: 'public' })] })])

  assert.equal(routeOf(table, 'GET http://x/logout?a=b'), 'orders: /* (logout)')
  assert.equal(routeOf(table, 'POST http://x/account/bye'), 'orders: /* (logout)')
  assert.equal(routeOf(table, 'GET http://x/logout;jsessionid=1'), 'orders: /* (logout)')
  for (const method of ['HEAD', 'DELETE', 'PUT', 'PATCH'])
    assert.equal(routeOf(table, `${method} http://x/logout`), 'orders: /* (logout)')
  assert.equal(routeOf(table, 'OPTIONS http://x/logout'), 'orders: /*')
  assert.equal(routeOf(table, 'GET http://x/logout/now'), 'orders: /*')
})

test('A logout link with a query is recognized in any order, letter case and encoding of its parameters', () => {
  const logout = [
    { path: parsePathPattern('/wp-login.php'), query: [['action', 'logout']], methods: undefined },
    {
      path: parsePathPattern('/*'),
      query: [
        ['option', 'com_users'],
        ['task', 'user.logout'],
      ],
      methods: undefined,
    },
  ] as const
  const table = createRouteTable([
    { ...upstream(), logout: { paths: logout, passFirst: false, cookies: [], call: undefined } },
  ])
  const isLogout = (target: string) => table.route('x', 'GET', canonicalTarget(target))?.isLogout

  for (const target of [
    '/wp-login.php?action=logout',
    '/wp-login.php?action=logout&_wpnonce=1a2b',
    '/WP-Login.php/?x=y&Action=LOGOUT',
    '/wp-login.php?%61ction=log%6Fut',
    '/wp-login.php?action=login&action=logout',
    '/wp-login.php;v=1?action=logout',
    '/index.php?task=user.logout&option=com_users',
    '/?task=user.logout&option=com_users',
  ])
    assert.equal(isLogout(target), true, target)
  for (const target of [
    '/wp-login.php',
    '/wp-login.php?',
    '/wp-login.php?action=login',
    '/wp-login.php?action=logouts',
    '/wp-login.php?redirect=action=logout',
    '/wp-admin/?action=logout',
    '/index.php?task=user.logout',
  ])
    assert.equal(isLogout(target), false, target)
})

test('A logout link with methods is one for these methods only', () => {
  const path = parsePathPattern('/session')
  const of = (methods: readonly string[]) =>
    createRouteTable([
      {
        ...upstream(),
        logout: { paths: [{ path, query: [], methods }], passFirst: false, cookies: [], call: undefined },
      },
    ])
  const isLogout = (methods: readonly string[], method: string) =>
    of(methods).route('x', method, canonicalTarget('/session'))?.isLogout

  assert.equal(isLogout(['DELETE', 'POST'], 'DELETE'), true)
  assert.equal(isLogout(['DELETE', 'POST'], 'POST'), true)
  assert.equal(isLogout(['DELETE', 'POST'], 'GET'), false)
  assert.equal(isLogout(['DELETE', 'POST'], 'OPTIONS'), false)
  assert.equal(isLogout(['GET'], 'HEAD'), true)
})

test('Path parameters are accepted when all readings match the same or an equivalent rule', () => {
  const rules = [rule('/static/*', { access: 'public' }), rule('/home/*'), rule('/app/*', { anyOf: ['users'] })]
  const table = createRouteTable([upstream({ rules })])

  assert.equal(routeOf(table, 'GET http://x/app/page;jsessionid=1'), 'orders: /app/*')
  assert.equal(routeOf(table, 'GET http://x/static/100%25.txt'), 'orders: /static/*')
  assert.equal(routeOf(table, 'GET http://x/home;v=1/page'), 'orders: /*')
})

for (const path of [
  '/static;x/a',
  '/;x/static/a',
  '/app;jsessionid=1/page',
  '/%2561pp/page',
  '/app./x',
  '/app%3fx/y',
  '/hr;x/y',
]) {
  test(`${path} is rejected because it can match two rules`, () => {
    const rules = [rule('/static/*', { access: 'public' }), rule('/app/*', { anyOf: ['users'] })]
    const table = createRouteTable([upstream({ rules }), upstream({ name: 'hr', path: '/hr/' })])

    assert.throws(() => routeOf(table, `GET http://x${path}`), { code: 'ERR_REQUEST_TARGET', message: /two ways/ })
  })
}

const site = upstream({ name: 'site', rules: [rule('/*', { access: 'public' })] })
const admin = upstream({ name: 'admin', path: '/admin/' })

for (const written of ['/admin/x', '/ADMIN/x', '/Admin', '/admin/'])
  test(`${written} matches the upstream that protects /admin of the same application, in any letter case`, () => {
    const { path } = canonicalTarget(written)
    const route = createRouteTable([site, admin]).route('any', 'GET', canonicalTarget(path))
    assert.equal(route?.upstream.name, 'admin')
    assert.equal(route.rule.access, 'signed_in')
  })

for (const written of [
  ...[
    '/adm%C4%B1n/x',
    '/ADM%C4%B0N',
    '/%EF%BD%81dmin/x',
    '/%EF%BC%A1DMIN',
    '/admin%2Fx',
    '/%2Fadmin',
    '/AD%256DIN%252fx',
    '/admin%EF%BC%9Bx/y',
    '/admin%EF%BC%9Fx',
    '/admin%EF%BC%83x',
  ],
])
  test(`${written} is rejected because the application may read it as the protected /admin`, () => {
    const table = createRouteTable([site, admin])
    assert.throws(() => table.route('any', 'GET', canonicalTarget(written)), { code: 'ERR_REQUEST_TARGET' })
  })

test('Letter case is ignored only between upstreams with the same application', () => {
  const elsewhere = { ...admin, targets: upstream({ url: new URL('http://127.0.0.1:3001') }).targets }
  const route = createRouteTable([site, elsewhere]).route('any', 'GET', canonicalTarget('/ADMIN/x'))
  assert.equal(route?.upstream.name, 'site')
})

test('An upstream that opens a path opens only the configured spelling', () => {
  const open = upstream({ name: 'open', path: '/admin/open/', rules: [rule('/*', { access: 'public' })] })
  const table = createRouteTable([upstream({ name: 'site' }), admin, open])
  const accessOf = (path: string) => table.route('any', 'GET', canonicalTarget(path))?.rule.access
  assert.equal(accessOf('/admin/open/x'), 'public')
  assert.equal(accessOf('/admin/OPEN/x'), 'signed_in')
  assert.equal(accessOf('/ADMIN/open/x'), 'signed_in')
})

test('An encoded slash is accepted when all readings match the same rule', () => {
  const rules = [rule('/public/*', { access: 'public' }), rule('/api/admin/*', { anyOf: ['admins'] })]
  const table = createRouteTable([upstream({ rules })])
  const access = (path: string) => table.route('any', 'GET', canonicalTarget(path))?.rule.access
  assert.equal(access('/api/v4/projects/group%2Fproject'), 'signed_in')
  assert.equal(access('/public/@scope%2fname'), 'public')
  for (const path of ['/public%2fx', '/api%2Fadmin/x', '/api/admin%2fx', '/%2fpublic', '/api%252fadmin%252fx'])
    assert.throws(() => access(path), { code: 'ERR_REQUEST_TARGET' }, path)
})

test('A rule with networks matches clients in them only, and the next rule decides about others', () => {
  const networks = new AddressSet([{ address: '10.0.0.0', prefix: 8, family: 'ipv4' }])
  const clients = { networks, text: ['10.0.0.0/8'] }
  const rules = [{ ...rule('/metrics', { access: 'public' }), clients }, rule('/metrics', { anyOf: ['admins'] })]
  const table = createRouteTable([upstream({ rules })])
  const rulesFor = (client?: string) => table.route('any', 'GET', canonicalTarget('/metrics'), client)?.rule

  assert.equal(rulesFor('10.1.2.3')?.access, 'public')
  for (const client of ['11.1.2.3', '::1', 'unknown', '', undefined]) assert.equal(rulesFor(client), rules[1], client)
})

test('A rule for an ending opens only paths that end so in every reading', () => {
  const table = createRouteTable([
    upstream({ rules: [rule('/static/*.css', { access: 'public' }), rule('/static/*.pdf')] }),
  ])
  const access = (path: string) => table.route('any', 'GET', canonicalTarget(path))?.rule.access

  assert.equal(access('/static/a/b.css'), 'public')
  assert.equal(access('/static/a.css?x=/admin'), 'public')
  for (const path of ['/static/a.CSS', '/static/a.css/', '/static/a', '/admin?x=.css', '/admin/x.css', '/static/.css'])
    assert.equal(access(path), 'signed_in', path)
  for (const path of [
    '/static/admin;x.css',
    '/static/admin%3fx.css',
    '/static/a%2f..%2fadmin%2fx.css',
    '/static/a%252ecss',
  ])
    assert.throws(() => access(path), { code: 'ERR_REQUEST_TARGET' }, path)
})

test('Without the policy decision point, only the configured spelling of a path is open', () => {
  const open: RuleConfig = { ...rule('/open/'), authorizeWith: false }
  const table = createRouteTable([upstream({ rules: [open] })])
  const isAsked = (path: string) => table.route('x', 'GET', canonicalTarget(path))?.rule.authorizeWith !== false

  assert.equal(isAsked('/open/'), false)
  for (const path of ['/open', '/Open/', '/OPEN']) assert.equal(isAsked(path), true, path)
})

for (const { regression, rules, paths, accepted } of [
  {
    regression: 'an unusual spelling of a path bypasses a step-up',
    rules: [{ ...rule('/admin/*'), stepUp: { acr_values: ['hardware'] } }],
    paths: ['/admin%2Fusers', '/admin;v=1/users', '/admin./users', '/admin%3Fusers', '/%2Fadmin/users'],
    accepted: '/other%2Fadmin',
  },
  {
    regression: 'an unusual spelling of a path bypasses the scope of an access token',
    rules: [
      { ...rule('/api/admin/*'), accessTokens: { scopes: ['orders.admin'] } },
      { ...rule('/api/*'), accessTokens: { scopes: [] } },
    ],
    paths: ['/api/admin%2Fusers', '/api/admin;v=1/users', '/api/admin./users', '/api/x%2F..%2Fadmin/users'],
    accepted: '/api/group%2Fproject',
  },
  {
    regression: 'an unusual spelling of a path bypasses the rule without access tokens',
    rules: [{ ...rule('/api/*'), accessTokens: { scopes: [] } }, rule('/**')],
    paths: ['/api%2Fusers'],
    accepted: '/api/group%2Fproject',
  },
  ...[{ serviceAccounts: 'all' } as const, {}].map((other) => ({
    regression: 'an unusual spelling of a path bypasses the rule of a service account',
    rules: [
      { ...rule('/export/admin/*'), serviceAccounts: ['admin'] },
      { ...rule('/export/*'), ...other },
    ],
    paths: ['/export/admin%2Fusers', '/export/admin;v=1/users', '/export/x%2F..%2Fadmin/users'],
    accepted: '/export/group%2Fproject',
  })),
] satisfies readonly { regression: string; rules: readonly RuleConfig[]; paths: readonly string[]; accepted: string }[])
  test(`A path that an application may read as one of a stricter rule is rejected: ${regression}`, () => {
    const table = createRouteTable([upstream({ rules })])

    for (const path of paths)
      assert.throws(() => table.route('any', 'GET', canonicalTarget(path)), { code: 'ERR_REQUEST_TARGET' }, path)
    assert.notEqual(table.route('any', 'GET', canonicalTarget(accepted)), undefined)
  })
