import assert from 'node:assert/strict'
import { test } from 'node:test'
import { matchesPath, parsePathPattern } from '../../src/core/patterns.ts'
import { patternsOf } from '../../src/setup/apache-sections.ts'
import { translateApache } from '../../src/setup/mod-auth-openidc.ts'
import { covers, regionsOf } from '../../src/setup/path-regions.ts'

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
  Satisfy: '<Location /admin>\nRequire ip 10.0.0.0/8\nSatisfy Any\n</Location>',
  '<If>': '<If "%{TIME_HOUR} -gt 20">\nRequire all denied\n</If>',
  RewriteRule: 'RewriteRule ^/secret - [F]',
}))
  test(`Until an operator decides, the file denies all people: ${what}`, () => {
    const file = translated(text)
    assert.ok(deniesAll(file), file.yaml)
    assert.ok(file.notes.some(({ level, text: why }) => level === 'decide' && why.includes('denies all people')))
  })

for (const [what, text] of Object.entries({
  'a condition of Apache': '<Location /admin>\nRequire expr "%{TIME_HOUR} -gt 20"\n</Location>',
  'another way of signing in': '<Location /admin>\nAuthType Basic\nRequire valid-user\n</Location>',
  'an expression of a claim that needs look-around': '<Location /admin>\nRequire claim groups~^(?!guest)\n</Location>',
}))
  test(`Until an operator decides, its paths deny all people: ${what}`, () => {
    const file = translated(text)
    assert.ok(!deniesAll(file))
    assert.match(file.yaml, /- path: \/admin\/\*\n +require:\n +# .*Decide who has access\.\n +- not:\n/)
  })

test('Settings of one section have a note', () => {
  const { notes } = translated('<Location /a>\nOIDCAuthNHeader X-User\nRequestHeader set X-A b\n</Location>')
  assert.deepEqual(
    notes.filter(({ option }) => option.endsWith(' in <location /a>')).map(({ option, level }) => `${level} ${option}`),
    ['lost oidcauthnheader in <location /a>', 'lost requestheader in <location /a>'],
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
    ['<Location />\nRequire valid-user', /^the section <location> has no end$/],
    ['ServerName a.example.com', /^there is no virtual host with OIDC directives/],
  ] as const)
    assert.throws(
      () => translateApache([{ name: 'site.conf', text }], [], undefined),
      (error: Error) => error instanceof SyntaxError && message.test(error.message) && !/never-to/.test(error.message),
      text,
    )
})
