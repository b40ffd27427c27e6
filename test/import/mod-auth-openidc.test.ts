import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { parse } from 'yaml'
import { patternsOf } from '../../packages/import/apache/apache-sections.ts'
import { translateApache } from '../../packages/import/apache/mod-auth-openidc.ts'
import { covers, regionsOf } from '../../packages/import/common/path-regions.ts'
import { loadText } from '../../src/config/load.ts'
import { matchesPath, parsePathPattern } from '../../src/core/patterns.ts'
import { failingTests } from '../../src/explain/embedded-tests.ts'

const server = `
ServerName orders.example.com
OIDCProviderMetadataURL https://id.example.com/.well-known/openid-configuration
OIDCClientID orders
OIDCRedirectURI https://orders.example.com/cb
ProxyPass / http://127.0.0.1:3000/
<Location />
  AuthType openid-connect
  Require valid-user
</Location>
`

function translated(text: string, ...args: string[]) {
  return translateApache([{ name: 'site.conf', text: server + text }], args, undefined)
}

/** Whether the file denies all people until an operator decides. */
function deniesAll({ yaml }: ReturnType<typeof translated>): boolean {
  return yaml.includes('# Denies all people until this is decided:')
}

test('A regular expression of paths becomes patterns of exactly these paths, or none', () => {
  const paths = [
    '/',
    '/a',
    '/a/',
    '/a/b',
    '/a/b/c',
    '/ab',
    '/b',
    '/b/edit',
    '/b/editx',
    '/x/edit/y',
    '/a.css',
    '/a/b.css',
  ]
  for (const [text, count] of [
    ['^/a(/|$)', 1],
    ['^/a(?:/.*)?$', 1],
    ['^/a/', 2],
    ['^/a/.*$', 2],
    ['^/a$', 1],
    ['^/(a|b)(/|$)', 2],
    ['^/[^/]+/edit(/|$)', 1],
    ['\\.css$', 1],
    ['^/', 1],
  ] as const) {
    const patterns = patternsOf(text)?.map(parsePathPattern)
    assert.equal(patterns?.length, count, text)
    for (const path of paths)
      assert.equal(
        patterns?.some((pattern) => matchesPath(pattern, path.slice(1).split('/'))),
        new RegExp(text).test(path),
        `${text} and ${path}`,
      )
  }
  for (const text of ['^/a', '/a/', '^/a.*b$', '^/(?!public)', '^/a{2}/', 'admin', '^/a|^/b'])
    assert.equal(patternsOf(text), undefined, text)
})

test('An ending within a folder also has the pages right below the folder', () => {
  const regions = regionsOf(['/a/', '/a/*/*', '/*.css', '/x.css/*'])
  assert.ok(regions.includes('/a/*.css'))
  assert.ok(covers('/a/*/*', '/a/*.css'))
  assert.ok(regions.includes('/x.css') && covers('/*.css', '/x.css'))
})

test('Regions contain each intersection, and the narrower path comes first', () => {
  const regions = regionsOf(['/*', '/wiki/*', '/*/edit/*', '/*.css'])

  assert.ok(regions.includes('/wiki/edit/*'))
  assert.ok(regions.includes('/wiki/*.css'))
  for (const [index, one] of regions.entries())
    for (const other of regions.slice(index + 1))
      assert.ok(!covers(one, other) || one === other, `${one} before ${other}`)
})

for (const [what, text] of Object.entries({
  'a regular expression that is no path':
    '<LocationMatch "^/(?!public)">\nRequire claim groups:admins\n</LocationMatch>',
  'a folder with a prefix': '<LocationMatch "^/admin">\nRequire claim groups:admins\n</LocationMatch>',
  'an unknown condition':
    '<IfDefine Production>\n<Location /admin>\nRequire claim groups:admins\n</Location>\n</IfDefine>',
  'an unknown module':
    '<IfModule mod_evasive.c>\n<Location /admin>\nRequire claim groups:admins\n</Location>\n</IfModule>',
  'a file that is not given': 'Include conf/admin.conf',
  'an unknown variable': '<Location /admin>\nRequire claim groups:${GROUP}\n</Location>',
  'an unknown directive': 'OIDCUnheardOf On',
  'an unknown directive in a section': '<Location /a>\nOIDCUnheardOf On\n</Location>',
  '<If>': '<If "%{TIME_HOUR} -gt 20">\nRequire all denied\n</If>',
  RewriteRule: 'RewriteRule ^/secret - [F]',
  'a certificate of the client': 'SSLVerifyClient require',
  'a condition about TLS': 'SSLRequire %{SSL_CIPHER} !~ m/^NULL/',
  'a firewall': 'SecRule REQUEST_URI "@beginsWith /admin" "id:1,deny"',
  'a limit of a module': 'DOSPageCount 2',
  'a directive that import does not know': 'UnheardOf On',
  'RedirectMatch of more than paths': 'RedirectMatch 403 "^/admin"',
  'a redirect of more than paths': 'RewriteRule ^/old(.*) https://b.example.com$1 [R,L]',
  'an optional file that is not given': 'IncludeOptional conf.d/*.conf',
  'ProxyPass in a section of expressions': '<LocationMatch "^/a/">\nProxyPass http://127.0.0.1:3001/\n</LocationMatch>',
  'an ending that also is a whole name': '<LocationMatch "\\.cgi$">\nRequire claim groups:admins\n</LocationMatch>',
  'an expression whose dot is any character':
    '<LocationMatch "^/admin.users(/|$)">\nRequire all denied\n</LocationMatch>',
  'proxies that name any address': 'RemoteIPHeader X-Real-IP',
  'a condition about claims': 'OIDCUserInfoClaimsExpr .sub',
  // The regression "a macro of Apache opens what it protects".
  'a macro':
    '<Macro Guard $path>\n<Location $path>\nRequire claim groups:staff\n</Location>\n</Macro>\nUse Guard /admin',
  '<If> with a redirect': '<If "%{TIME_HOUR} -gt 20">\nRedirect 403 /\n</If>',
}))
  test(`Until an operator decides, the file denies all people: ${what}`, () => {
    const file = translated(text)
    assert.ok(deniesAll(file), file.yaml)
    assert.ok(file.notes.some(({ level, text: why }) => level === 'decide' && why.includes('denies all people')))
  })

for (const [what, text] of Object.entries({
  'a condition of Apache': '<Location /admin>\nRequire expr "%{TIME_HOUR} -gt 20"\n</Location>',
  'another way of signing in': '<Location /admin>\nAuthType Basic\nRequire valid-user\n</Location>',
  Satisfy: '<Location /admin>\nRequire ip 10.0.0.0/8\nSatisfy Any\n</Location>',
  'a certificate of the client': '<Location /admin>\nSSLVerifyClient require\n</Location>',
  'a condition about TLS': '<Location /admin>\nSSLRequire true\n</Location>',
  'methods that Apache refuses': '<Location /admin>\nAllowMethods GET\n</Location>',
  'a redirect in a section': '<Location /admin>\nRedirect 403\n</Location>',
  'a firewall': '<Location /admin>\nSecRuleEngine On\n</Location>',
  'a directive that import does not know': '<Location /admin>\n<Limit POST>\nUnheardOf On\n</Limit>\n</Location>',
  'a claim that a list removes': 'OIDCBlackListedClaims groups\n<Location /admin>\nRequire claim groups:a\n</Location>',
  'an expression of a claim that needs look-around': '<Location /admin>\nRequire claim groups~^(?!guest)\n</Location>',
}))
  test(`Until an operator decides, its paths deny all people: ${what}`, () => {
    const file = translated(text)
    assert.ok(!deniesAll(file))
    assert.match(file.yaml, /- path: \/admin\/\*\n +require:\n +# .*Decide who has access\.\n +- not:\n/)
  })

function rulesOf(text: string): readonly { readonly path: string; readonly [setting: string]: unknown }[] {
  const { upstreams } = parse(translated(text).yaml) as { upstreams: { orders: { rules: [] } } }
  return upstreams.orders.rules
}

test('<Limit HEAD> restricts GET, as in Apache', () => {
  const rules = rulesOf('<Location /a>\n<Limit HEAD>\nRequire claim groups:admins\n</Limit>\n</Location>')
  assert.deepEqual(rules[0], { path: '/a/*', require: [{ claim: 'groups', any_of: ['admins'] }], methods: ['GET'] })
})

test('AuthMerging Off without a Require takes away the Require of other sections, and so denies all people', () => {
  const rules = rulesOf('<Location /a>\nAuthMerging Off\n</Location>')
  assert.deepEqual(rules[0], { path: '/a/*', require: [{ not: { networks: ['0.0.0.0/0', '::/0'] } }] })
})

for (const name of ['RequireAll', 'RequireAny', 'RequireNone'])
  test(`An empty <${name}> denies all people, as in Apache`, () => {
    const rules = rulesOf(`<Location /empty>\n<${name}>\n</${name}>\n</Location>`)
    assert.deepEqual(rules[0], { path: '/empty/*', require: [{ not: { networks: ['0.0.0.0/0', '::/0'] } }] })
  })

test('An AuthType without a Require denies all people, as in Apache', () => {
  const text = server.replace(/<Location[^]*/, '<Location /a>\nAuthType openid-connect\n</Location>')
  const { yaml } = translateApache([{ name: 'site.conf', text }], [], undefined)
  const { upstreams } = parse(yaml) as { upstreams: { orders: { rules: readonly object[] } } }
  assert.deepEqual(upstreams.orders.rules[0], {
    path: '/a/*',
    require: [{ not: { networks: ['0.0.0.0/0', '::/0'] } }],
  })
})

test('A page with a slash at its end needs what the page without it needs, because one rule has both', () => {
  const rules = rulesOf(
    '<Location /a>\nRequire claim groups:admins\n</Location>\n<Location /a/b/>\nRequire claim groups:ops\n</Location>',
  )
  assert.deepEqual(rules[0], {
    path: '/a/b/',
    require: [
      { claim: 'groups', any_of: ['ops'] },
      { claim: 'groups', any_of: ['admins'] },
    ],
  })
})

test('A page with a slash at its end is denied where people sign in with something else without it', () => {
  const rules = rulesOf(
    '<Location /a/b>\nAuthType Basic\nRequire valid-user\n</Location>\n<Location /a/b/>\nAuthType openid-connect\n</Location>',
  )
  assert.deepEqual(rules[0], { path: '/a/b/', require: [{ not: { networks: ['0.0.0.0/0', '::/0'] } }] })
})

for (const [what, text] of Object.entries({
  'RedirectMatch 403': 'RedirectMatch 403 ^/admin(/|$)',
  'Redirect gone': 'Redirect gone /admin',
  'RewriteRule [F]': 'RewriteEngine On\nRewriteRule ^/?admin(/.*)?$ - [F,L]',
  'a redirect with a condition':
    'RewriteEngine On\nRewriteCond %{REMOTE_ADDR} !^10\\.\nRewriteRule ^/admin(/.*)?$ https://b.example.com/ [R=302,L]',
}))
  test(`What Apache refuses or leads elsewhere is denied: ${what}`, () => {
    const { yaml } = translated(text)
    assert.match(yaml, /rules:\n +- path: \/admin\/\*\n +require:\n +# Apache answers with .*\n +- not:\n/)
  })

test('Redirects are translated', () => {
  const { yaml } = translated(
    `RewriteEngine On
     Redirect permanent /old https://new.example.com/
     RedirectMatch ^/wiki/(.*)$ https://wiki.example.com/$1
     RewriteCond %{HTTPS} off
     RewriteRule ^ https://%{HTTP_HOST}%{REQUEST_URI} [R=301,L]
     RewriteRule ^/help$ https://help.example.com/ [R=301,L]
     RewriteCond %{HTTP:Upgrade} =websocket [NC]
     RewriteRule /(.*) ws://127.0.0.1:3000/$1 [P,L]`,
  )
  assert.ok(!deniesAll({ yaml, notes: [] }), yaml)
  const { upstreams } = parse(yaml) as { upstreams: { orders: { rules: readonly object[] } } }
  assert.deepEqual(upstreams.orders.rules, [
    { path: '/old/*', access: 'public', respond: { to: 'https://new.example.com/*', status: 301 } },
    { path: '/wiki/*', access: 'public', respond: { to: 'https://wiki.example.com/*', status: 302 } },
    { path: '/help', access: 'public', respond: { to: 'https://help.example.com/', status: 301 } },
    { path: '/*' },
  ])
})

test('A client cannot send a field that Apache sets or removes', () => {
  const { yaml } = translated(`RequestHeader set X-Deployer-User %{REMOTE_ADDR}s
RequestHeader unset X-Internal
RequestHeader set X-Role user
RequestHeader set X-Kept first
RequestHeader setifempty X-Kept second
RequestHeader set x-role "expr=%{tolower:%{REQUEST_METHOD}}"
RequestHeader set X-Admin yes env=is_admin
RequestHeader set X-Person %{OIDC_CLAIM_email}e env=is_admin
RequestHeader set X_Mail %{OIDC_CLAIM_email}e env=OIDC_CLAIM_email
RequestHeader set X-Api-Token abc
RequestHeader set X-Look "%{LA-U:REMOTE_USER}s"
RequestHeader edit X-Edited a b
RequestHeader unset Cookie
RequestHeader unset Proxy-User
RequestHeader set Proxy-Role %{OIDC_CLAIM_role}e
RequestHeader set Host b.example.com
RequestHeader set X-Forwarded-User %{REMOTE_USER}e
RequestHeader set X-Forwarded-Port 443
OIDCClaimPrefix MELLON_
<Location /a>
RequestHeader set X-Section a
<Limit POST>
RequestHeader unset X-Limited
</Limit>
OIDCAuthNHeader X-Section-User
</Location>`)
  const { upstreams } = parse(yaml) as {
    upstreams: { orders: { headers: Record<string, object>; request_headers: { remove: readonly string[] } } }
  }
  const { headers, request_headers } = upstreams.orders
  const removed = 'OIDC_* MELLON-* X-Deployer-User X-Internal x-role X-Admin X-Person X-Look X-Edited Cookie X-Section'
  assert.deepEqual(
    request_headers.remove.toSorted(),
    `${removed} Proxy-User Proxy-Role X-Limited X-Section-User`.split(' ').toSorted(),
  )
  assert.deepEqual(
    Object.keys(headers).filter((name) => !name.startsWith('MELLON')),
    ['X-Remote-User', 'X-Kept', 'X-Mail', 'X-Api-Token', 'X-Forwarded-User', 'X-Forwarded-Port'],
  )
  assert.deepEqual(headers['X-Api-Token'], { env: 'X_API_TOKEN' })
  assert.deepEqual(headers['X-Kept'], { value: 'first' })
})

const byUser = '%{OIDC_CLAIM_preferred_username}e'
for (const header of [
  `RequestHeader set X-Remote-User "${byUser}"`,
  'RequestHeader set X-Remote-User "%{OIDC_CLAIM_email}e"',
  'RequestHeader set X-Remote-User "guest"',
  'RequestHeader unset X-Remote-User',
  `RequestHeader append X-Remote-User "${byUser}"`,
  `RequestHeader set x-remote-user "${byUser}" env=OIDC_CLAIM_preferred_username`,
  `<Location />\nRequestHeader set X-Remote-User "${byUser}"\n</Location>`,
])
  test(`A person without the claim of OIDCRemoteUserClaim has no access with: ${header.replaceAll('\n', ' ')}`, () => {
    const user = 'OIDCRemoteUserClaim preferred_username\n'
    const { yaml } = translated(`${user}${header}\n<Location /welcome>\nOIDCUnAuthAction pass\n</Location>`)
    const { rules, tests } = ordersIn(yaml)
    const require = [{ claim: 'preferred_username', matches: '.+' }]
    assert.deepEqual(rules, [
      { path: '/welcome/*', require },
      { path: '/*', require },
    ])
    assert.ok(tests.some((each) => isDeepStrictEqual(each, { as: { sub: 'noname' }, get: '/', expect: 'forbidden' })))
    assert.deepEqual(failing(yaml), [])
  })

test('A path with OIDCUnAuthAction pass needs no sign-in while the header of OIDCRemoteUserClaim is required', () => {
  const pass = '<Location /welcome>\nOIDCUnAuthAction pass\n</Location>'
  const { yaml } = translated(`OIDCRemoteUserClaim email\n${pass}`)
  assert.deepEqual(ordersIn(yaml).rules[0], { path: '/welcome/*', access: 'optional' })
})

test('A person whose claim the expression of OIDCRemoteUserClaim does not match has no access', () => {
  const { yaml } = translated('OIDCRemoteUserClaim email ^(.*)@example\\.com$ $1')
  assert.deepEqual(ordersIn(yaml).rules, [{ path: '/*', require: [{ claim: 'email', matches: '(.*)@example\\.com' }] }])
  assert.deepEqual(failing(yaml), [])
  for (const unknown of ['sub@ ^(.*)@ $1', 'email (?i)^x $1'])
    assert.ok(deniesAll(translated(`OIDCRemoteUserClaim ${unknown}`)), unknown)
})

test('An expression that JavaScript does not have is a decision, and not the end of import', () => {
  const { notes } = translated('<Location /a>\nRequire claim x~(?i)admin\nRequire claim x:user\n</Location>')
  assert.ok(notes.some(({ level, option }) => level === 'decide' && option === 'Require for /a/*'))
})

interface Written {
  readonly rules: readonly object[]
  readonly tests: readonly object[]
}

function ordersIn(yaml: string): Written {
  return (parse(yaml) as { upstreams: { orders: Written } }).upstreams.orders
}

/** The tests of the file that fail. */
function failing(yaml: string): unknown {
  const environment = { CLIENT_SECRET: 'correct horse battery', SESSION_KEY: Buffer.alloc(32, 7).toString('base64') }
  const loaded = loadText(yaml, environment)
  assert.ok(loaded.ok, yaml)
  return failingTests(loaded.config)
}

test('The gateway listens at another port than the application, and the tests run', () => {
  const text = server.replaceAll('127.0.0.1:3000', '127.0.0.1:8080')
  const { yaml, notes } = translateApache([{ name: 'site.conf', text }], [], undefined)
  assert.match(yaml, /^listen: 127\.0\.0\.1:8081$/m)
  assert.ok(!notes.some((note) => note.text.includes('this file has an error')))
})

test('The proxy to the provider is translated, without its password', () => {
  const { yaml } = translated('OIDCOutgoingProxy proxy.example.com:3128 gate:never-to-be-printed basic')
  assert.deepEqual((parse(yaml) as { egress_proxy: object }).egress_proxy, {
    url: 'http://proxy.example.com:3128',
    username: 'gate',
    password: { env: 'PROXY_PASSWORD' },
  })
  assert.doesNotMatch(yaml, /never-to/)
})

test('A reason to deny all people is said once', () => {
  const { yaml } = translated('SecRule a\nSecRule b\n')
  assert.equal(yaml.match(/# - SecRule: /g)?.length, 2)
})

test('Notes name directives as the file writes them', () => {
  const { notes } = translated(
    'SSLVerifyClient require\nRedirectMatch 403 ^/[a-z]+x\n<Files x>\nRequire all denied\n</Files>',
  )
  const options = notes.map(({ option }) => option)
  for (const option of ['SSLVerifyClient', 'RedirectMatch 403 ^/[a-z]+x', '<Files x>'])
    assert.ok(options.includes(option), `${option}: ${options.join('; ')}`)
})

test('A <Location> that merges also merges with <Proxy *>, although another one before it does not', () => {
  const proxy = '<Proxy *>\nAuthType openid-connect\nRequire claim groups:staff\n</Proxy>\n'
  const merging = (how: string) => `<Location /a>\nAuthMerging ${how}\nRequire claim groups:ops\n</Location>`
  const ruleOf = (text: string) => {
    const { upstreams } = parse(translated(proxy + text).yaml) as { upstreams: { orders: { rules: object[] } } }
    return upstreams.orders.rules[0]
  }
  const [staff, ops] = ['staff', 'ops'].map((group) => ({ claim: 'groups', any_of: [group] }))
  assert.deepEqual(ruleOf(merging('And')), { path: '/a/*', require: [staff, ops] })
  assert.deepEqual(ruleOf(merging('Off')), { path: '/a/*', require: [ops] })
})

test('Where all people who sign in have access, there are no rules', () => {
  assert.doesNotMatch(translated('').yaml, /rules:/)
})

test('Settings of one section have a note', () => {
  const { notes } = translated('<Location /a>\nOIDCAuthNHeader X-User\nRequestHeader set X-A b\n</Location>')
  assert.deepEqual(
    notes.filter(({ option }) => option.endsWith(' in <Location /a>')).map(({ option, level }) => `${level} ${option}`),
    ['lost OIDCAuthNHeader in <Location /a>', 'lost RequestHeader in <Location /a>'],
  )
})

test('Virtual hosts with different clients deny all people until an operator decides', () => {
  const host = (name: string, client: string) => `<VirtualHost *:443>
ServerName ${name}.example.com
OIDCProviderMetadataURL https://id.example.com/.well-known/openid-configuration
OIDCClientID ${client}
ProxyPass / http://127.0.0.1:3000/
<Location />
AuthType openid-connect
Require valid-user
</Location>
</VirtualHost>
`
  const importOf = (...hosts: string[]) => translateApache([{ name: 'site.conf', text: hosts.join('') }], [], undefined)

  assert.ok(deniesAll(importOf(host('a', 'one'), host('b', 'two'))))
  assert.ok(!deniesAll(importOf(host('a', 'one'), host('b', 'one'))))
})

test('Definitions and included files are resolved, and a name of -D is defined', () => {
  const main = `Define GROUP admins\n${server}Include conf.d/*.conf\n<IfDefine Strict>\n<Location /b>\nRequire claim groups:\${GROUP}\n</Location>\n</IfDefine>\n`
  const included =
    '<Location "/a b">\nRequire claim groups:x\n</Location>\n<Location /a>\nRequire claim "groups:\\"q\\" r"\n</Location>'
  const files = [
    { name: 'site.conf', text: main },
    { name: '/etc/apache2/conf.d/a.conf', text: included.replace(/^[^]*?<\/Location>\n/, '') },
  ]

  const file = translateApache(files, ['-D', 'Strict'], undefined)

  assert.ok(!deniesAll(file), file.yaml)
  assert.match(file.yaml, /path: \/a\/\*\n +require:\n +- claim: groups\n +any_of:\n +- '"q" r'\n/)
  assert.match(file.yaml, /path: \/b\/\*\n +require:\n +- claim: groups\n +any_of:\n +- admins\n/)
})

test('Errors name the line, and quote no argument', () => {
  for (const [text, message] of [
    ['OIDCClientSecret never-to-be-printed\n</Location>', /^site\.conf, line 2: <\/Location> ends no section/],
    ['<Location /never-to-be-printed', /^site\.conf, line 1: the section has no ">"$/],
    ['<Location />\nRequire valid-user', /^the section <Location> has no end$/],
    ['ServerName a.example.com', /^there is no virtual host with OIDC directives/],
  ] as const)
    assert.throws(
      () => translateApache([{ name: 'site.conf', text }], [], undefined),
      (error: Error) => error instanceof SyntaxError && message.test(error.message) && !/never-to/.test(error.message),
      text,
    )
})
