import type { Choices, Generated } from './generated.ts'

const modules = '/usr/lib/apache2/modules'
const loaded = ['access_compat', 'allowmethods', 'env', 'rewrite', 'socache_shmcb', 'ssl'].map(
  (name) => `LoadModule ${name}_module ${modules}/mod_${name}.so\n`,
)

const paths = ['/', '/admin', '/admin/help', '/a', '/a/b', '/files', '/user1', '/public', '/a/old', '/wiki/edit']
const groups = ['admins', 'staff', 'ops']

/** A virtual host of Apache. `settings` are those of mod_auth_openidc. */
export function apacheSite(settings: string, choices: Choices): Generated {
  const signInAt = '/protected/none'
  const sections = Array.from({ length: 1 + choices.below(5) }, () => section(choices))
  const server = choices.some(serverLines, 3)
  const theirs = [
    ...server.map((line) => choices.one(line)),
    ...(choices.is(70) ? ['<Location />', 'AuthType openid-connect', 'Require valid-user', '</Location>'] : []),
    ...sections.flat(),
    'AllowEncodedSlashes NoDecode',
    ...[
      '<Location /protected>',
      'AuthType openid-connect',
      'OIDCUnAuthAction auth',
      'Require valid-user',
      '</Location>',
    ],
    settings,
    ...loaded,
  ].join('\n')
  return { theirs, paths, signInAt, fields }
}

const fields = [
  ...['OIDC-CLAIM-email', 'OIDC_CLAIM_email', 'OIDC-access-token', 'OIDC-CLAIM-sub', 'MELLON-email', 'X-Remote-User'],
  ...['X-Set-Role', 'X-Set-Name', 'X-Gone', 'X-Other', 'X-Forwarded-User', 'X-Look-Up', 'X-Api-Token'],
]

/** Kinds of directives outside of sections, each with its forms. */
const serverLines: readonly (readonly string[])[] = [
  ['RequestHeader set X-Set-Role user', 'RequestHeader set X-Set-Role admin', 'RequestHeader set x-set-role "a b"'],
  [
    'RequestHeader setifempty X-Set-Role user',
    'RequestHeader append X-Set-Role user',
    'RequestHeader add X-Set-Role user',
  ],
  ['RequestHeader set X-Set-Role user env=is_set', 'RequestHeader set X-Set-Role "expr=%{REQUEST_METHOD}"'],
  [
    'RequestHeader set X-Set-Name %{REMOTE_USER}e env=is_set',
    'RequestHeader set X-Set-Name %{OIDC_CLAIM_email}e env=OIDC_CLAIM_email',
  ],
  ['RequestHeader unset X-Gone', 'RequestHeader edit X-Gone ^.*$ ""', 'RequestHeader unset X-Gone early'],
  [
    'RequestHeader set X-Look-Up "%{LA-U:REMOTE_USER}s"',
    'RequestHeader set X-Api-Token abc',
    'RequestHeader unset X-Forwarded-User',
  ],
  ['OIDCClaimPrefix MELLON_', 'OIDCClaimPrefix OIDC_CLAIM_', 'OIDCPassClaimsAs none', 'OIDCPassClaimsAs environment'],
  ['OIDCAuthNHeader X-Remote-User', 'OIDCWhiteListedClaims email sub', 'OIDCBlackListedClaims email'],
  [
    'Redirect 403 /admin',
    'Redirect gone /a/old',
    'Redirect permanent /a/old https://b.example.com/',
    'Redirect /files https://b.example.com/f',
  ],
  [
    'RedirectMatch 403 ^/admin',
    'RedirectMatch 403 "^/admin(/|$)"',
    'RedirectMatch gone "\\.css$"',
    'RedirectMatch ^/wiki/(.*)$ https://b.example.com/$1',
  ],
  [
    'RewriteEngine On\nRewriteRule ^/admin - [F]',
    'RewriteEngine On\nRewriteRule ^/?a/old$ - [G,L]',
    'RewriteEngine On\nRewriteRule ^/files(/.*)?$ https://b.example.com/ [R=302,L]',
  ],
  [
    'RewriteEngine On\nRewriteCond %{REQUEST_METHOD} !=GET\nRewriteRule ^/admin(/.*)?$ - [F]',
    'RewriteEngine Off\nRewriteRule ^/a - [F]',
    'RewriteEngine On\nRewriteRule ^/public - [L]',
  ],
  ['ProxyPass /files !', 'ProxyPass /a/ !', 'ProxyPass /public http://127.0.0.1:3000/public'],
  [
    '<Proxy *>\nRequire all granted\n</Proxy>',
    '<Proxy *>\nRequire claim groups:staff\n</Proxy>',
    '<Files "*">\nRequire all denied\n</Files>',
    '<Directory />\nRequire all denied\n</Directory>',
    '<If "true">\nHeader set X-A b\n</If>',
  ],
  [
    '<IfModule mod_headers.c>\nRequestHeader unset X-Gone\n</IfModule>',
    '<IfModule !mod_headers.c>\nRequestHeader unset X-Gone\n</IfModule>',
    '<IfDefine Absent>\n<Location /a>\nRequire all denied\n</Location>\n</IfDefine>',
    'Define ROLE staff\n<Location /wiki>\nRequire claim groups:${ROLE}\n</Location>',
    '<Location /public>\nProxyPass http://127.0.0.1:3000/public\n</Location>',
    '<LocationMatch "^/wiki/.*$">\nProxyPass http://127.0.0.1:3000\n</LocationMatch>',
    '<Location /a>\nOIDCUnAuthAction pass\n</Location>\nOIDCUnAuthAction 401',
  ],
  ['SetEnvIf X-Other . is_set', 'SetEnv is_set 1', 'Header set X-Frame-Options DENY', 'ServerSignature Off'],
]

function section(choices: Choices): readonly string[] {
  const at = choices.one(paths)
  const open = choices.one([
    ...[at, at, at, `${at}/`, `"${at}"`].map((path) => `Location ${path.replace('//', '/')}`),
    ...[
      `^${at}(/|$)`,
      `^${at}$`,
      `^${at}/`,
      at,
      '\\.css$',
      '^/[^/]+/edit(/|$)',
      '^/(admin|a)(/|$)',
      '^/admin.help',
    ].map((expression) => `LocationMatch "${expression.replace('//', '/')}"`),
    `Location ~ "^${at.replace(/\/$/, '')}(/.*)?$"`,
  ])
  const body = [
    ...(choices.is(60) ? [choices.one(['AuthType openid-connect', 'AuthType openid-connect', 'AuthType None'])] : []),
    ...(choices.is(25) ? [`AuthMerging ${choices.one(['Off', 'And', 'Or'])}`] : []),
    ...(choices.is(20) ? [`OIDCUnAuthAction ${choices.one(['pass', '401', '410', 'auth', 'auth true'])}`] : []),
    ...(choices.is(85) ? limited(choices) : []),
    ...(choices.is(15) ? [choices.one(sectionLines)] : []),
  ]
  return [`<${open}>`, ...body, `</${open.split(' ')[0]}>`]
}

/** Directives that restrict, and others. */
const sectionLines = [
  ...['SSLRequireSSL', 'SSLRequire %{REQUEST_METHOD} eq "GET"', 'AllowMethods GET', 'AllowMethods GET POST'],
  ...[
    'Order deny,allow\nDeny from all',
    'Order allow,deny\nAllow from 127.0.0.1\nSatisfy Any',
    'Deny from all\nSatisfy All',
  ],
  ...[
    'Redirect 403 ""',
    'RewriteEngine On\nRewriteRule ^ - [F]',
    'RequestHeader set X-Set-Role section',
    'RequestHeader unset X-Gone',
  ],
  ...[
    'SetEnv is_set 1',
    'Header set X-A b',
    'LimitRequestBody 1',
    '<If "%{REQUEST_METHOD} == \'POST\'">\nRequire all denied\n</If>',
  ],
  ...['RequestHeader set X-Set-Name %{OIDC_CLAIM_sub}e', 'OIDCAuthNHeader X-Look-Up', 'OIDCPassClaimsAs none'],
]

function limited(choices: Choices): readonly string[] {
  const lines = requirements(choices)
  if (!choices.is(25)) return lines
  const name = choices.one(['Limit', 'LimitExcept'])
  const methods = choices.one(['GET', 'POST', 'GET POST', 'POST PUT DELETE', 'HEAD', 'GET HEAD OPTIONS'])
  return [`<${name} ${methods}>`, ...lines, `</${name}>`]
}

function requirements(choices: Choices): readonly string[] {
  const lines = [requirement(choices), ...(choices.is(30) ? [requirement(choices)] : [])]
  if (!choices.is(35)) return lines
  const kind = choices.one(['RequireAll', 'RequireAll', 'RequireAny'])
  const negated = kind === 'RequireAll' && choices.is(50) ? [`Require not ${positive(choices)}`] : []
  const none =
    kind === 'RequireAll' && choices.is(20) ? ['<RequireNone>', `Require ${positive(choices)}`, '</RequireNone>'] : []
  return [`<${kind}>`, ...lines, ...negated, ...none, `</${kind}>`]
}

function positive(choices: Choices): string {
  const group = choices.one(groups)
  return choices.one([
    ...[`claim groups:${group}`, `claim groups~^${group.slice(0, 3)}`, `claim groups~${group}$`, 'user jane'],
    ...[
      'ip 10.0.0.0/8',
      'ip 127.0.0.1',
      'method GET',
      'method POST PUT',
      'env is_set',
      'claim level:2',
      'claim active:true',
    ],
    ...['expr "%{REQUEST_METHOD} == \'GET\'"', 'local', 'claim email~^(jane|zoe)@', 'claim address.city:Berlin'],
  ])
}

function requirement(choices: Choices): string {
  if (choices.is(50)) return `Require ${positive(choices)}`
  return choices.one([
    ...['Require valid-user', 'Require valid-user', 'Require all granted', 'Require all denied'],
    ...['Require claim groups:admins groups:ops', 'Require claim groups:admins email:zoe@example.com'],
    ...['Require claim groups~^(?!staff)', 'Require host example.org', 'Require claim groups~.*'],
  ])
}
