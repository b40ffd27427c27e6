// Own process: it works in the folder of the golden cases, whose secrets the environment names.
import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chdir } from 'node:process'
import { after, test } from 'node:test'
import { parse, parseDocument } from 'yaml'
import { loadConfig } from '../../src/config/load.ts'
import { environment } from './environment.ts'

// Each mistake has one diagnostic that says what is wrong and what to do, and it is the first one.
const cases = new URL('cases/', import.meta.url).pathname
chdir(cases)
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-first-line-'))
after(() => rmSync(folder, { recursive: true }))

const valid = `version: 1
external_url: https://orders.example.com
provider:
  issuer: https://id.example.com
  client_id: orders
  client_secret: { env: CLIENT_SECRET }
upstreams:
  orders:
    url: http://127.0.0.1:3000
    headers: { X-Remote-User: sub }
`

/** A setting and its value in YAML; without a value, it is removed. */
type Change = readonly [path: string, value?: string]

function diagnosticsOf(changes: readonly Change[]) {
  const document = parseDocument(valid)
  for (const [path, value] of changes) {
    const names = path.split('.')
    if (value === undefined) document.deleteIn(names)
    else document.setIn(names, document.createNode(parse(value)))
  }
  return diagnosticsOfText(document.toString({ lineWidth: 0 }))
}

function diagnosticsOfText(text: string) {
  const file = join(folder, 'gateway.yaml')
  writeFileSync(file, text)
  const loaded = loadConfig(file, environment)
  return loaded.ok ? loaded.warnings : loaded.diagnostics
}

const groupsFromApi =
  '[{ url: "https://api.example.com/groups", token: client_credentials, scopes: [groups], select: "[].name", as: groups }]'
const entra = 'https://login.microsoftonline.com/11111111-2222-3333-4444-555555555555'
const google = 'https://accounts.google.com'
const cognito = 'https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_AbCdEfGhI'
const redis = (settings: string): Change => [
  'session',
  `{ keys: [{ env: SESSION_KEY }], store: { redis: { ${settings} } } }`,
]
const rule = (text: string): Change => ['upstreams.orders.rules', `[{ path: /admin/*, ${text} }]`]
const rules = (...texts: string[]): Change => ['upstreams.orders.rules', `[${texts.join(', ')}]`]
const header = (claim: string): Change => ['upstreams.orders.headers.X-Name', claim]
const store = (text: string): Change => [
  'session',
  `{ keys: [{ env: SESSION_KEY }], store: ${JSON.stringify(parse(text))} }`,
]
const remove = (name: string): Change => ['upstreams.orders.request_headers', `{ remove: ["${name}"] }`]
const issuer = (text: string): Change => ['provider.issuer', text]

const mistakes: readonly (readonly [changes: readonly Change[], first: RegExp])[] = [
  [[issuer(entra)], /lacks \/v2\.0.*write https:.*555\/v2\.0$/],
  [[issuer(`${entra}/v2.0/`)], /is not the issuer of Entra ID.*555\/v2\.0$/],
  [[issuer('https://login.microsoftonline.com/common/v2.0')], /has common in place of a tenant/],
  [[issuer('https://login.microsoftonline.com/example.onmicrosoft.com/v2.0')], /must have the ID of the tenant/],
  [[issuer(`${entra}/oauth2/v2.0/authorize`)], /is not the issuer of Entra ID/],
  [
    [issuer('https://id.example.com/.well-known/openid-configuration')],
    /not the issuer; write https:\/\/id\.example\.com$/,
  ],
  [[issuer('https://acme.eu.auth0.com/.well-known/openid-configuration')], /write https:\/\/acme\.eu\.auth0\.com\/$/],
  [[issuer(`${entra.replace(/[\d-]+$/, 'common')}/v2.0/.well-known/openid-configuration`)], /write .*TENANT_ID\/v2\.0/],
  [[issuer('https://acme.eu.auth0.com/oauth/token')], /endpoint.*probably https:\/\/acme\.eu\.auth0\.com\/$/],
  [
    [issuer('https://acme.eu.auth0.com/login/callback')],
    /not the issuer of Auth0.*write https:\/\/acme\.eu\.auth0\.com\/$/,
  ],
  [[issuer('https://acme.okta.com/oauth2')], /not an issuer of Okta; write https:\/\/acme\.okta\.com$/],
  [[issuer('https://acme.okta.com/oauth2/default/clients')], /write https:\/\/acme\.okta\.com\/oauth2\/default$/],
  [[issuer('https://sso.example.com/auth')], /has no realm.*write https:\/\/sso\.example\.com\/auth\/realms\/REALM$/],
  [
    [issuer('https://keycloak.example.com/shop')],
    /has no \/realms\/.*write https:\/\/keycloak\.example\.com\/realms\/shop$/,
  ],
  [[issuer(google), header('groups')], /X-Name: reads groups, which Google does not send; write provider\.claims_from/],
  [[issuer(google), header('preferred_username')], /which Google does not send; write one of .* email/],
  [
    [issuer(google), ['provider.scopes', '[openid, groups]'], header('groups')],
    /scopes\[1\]: is no scope of Google.*claims_from/,
  ],
  [[issuer(google), header('emial')], /"email"/],
  [[issuer(`${entra}/v2.0`), header('grups')], /"groups"/],
  [[issuer('https://kc.example.com/realms/shop/protocol/openid-connect/auth')], /below the issuer.*realms\/shop$/],
  [[issuer('https://kc.example.com/admin/master/console/#/shop')], /administration console of Keycloak.*realms\/shop$/],
  [[issuer('https://kc.example.com/realms/shop/')], /ends with a slash.*realms\/shop$/],
  [[issuer('https://keycloak.example.com')], /has no realm/],
  [[issuer('https://kc.example.com/realms/shop/realms/shop')], /has \/realms\/shop twice.*example.com\/realms\/shop$/],
  [[issuer('https://kc.example.com:8443/auth/realm/shop')], /has \/realm\/.*write .*:8443\/auth\/realms\/shop$/],
  [[issuer(`${entra}/v2.0`), header('oid')], /headers\.X-Name: reads oid.*write provider\.id_token_claims: \[oid\]/],
  [
    [issuer(`${entra}/v2.0`), ['provider.id_token_claims', '[oid]'], rule('require: { claim: roles, any_of: [a] }')],
    /require: reads roles.*id_token_claims: \[oid, roles\]/,
  ],
  [
    [issuer(`${entra}/v2.0`), ['provider.scopes', '[openid, groups]'], ['provider.id_token_claims', '[groups]']],
    /scopes\[1\]: is no scope of Entra ID.*id_token_claims: \[groups\]/,
  ],
  [
    [issuer('https://acme.okta.com'), ['provider.scopes', '[openid, email]'], header('groups')],
    /scopes: lack groups.*add groups/,
  ],
  [
    [issuer('https://dex.example.com/dex'), ['provider.scopes', '[openid, email]'], header('groups')],
    /scopes: lack groups.*Dex sends.*add groups to them$/,
  ],
  [
    [issuer(cognito), rule('require: { claim: groups, any_of: [a] }')],
    /reads groups, which the UserInfo of Amazon Cognito.*cognito:groups in its place.*id_token_claims: \[cognito:groups\]$/,
  ],
  [[issuer(cognito), header('cognito:groups')], /write provider\.id_token_claims: \[cognito:groups\]$/],
  [
    [
      issuer(`${entra}/v2.0`),
      ['provider.id_token_claims', '[groups]'],
      rule('require: { claim: groups, any_of: [A b] }'),
    ],
    /require: compares groups with "A b", and Entra ID sends the object IDs.*write the object ID/,
  ],
  [
    [
      issuer(`${entra}/v2.0`),
      ['provider.id_token_claims', '[groups]'],
      rule('require: { all: [{ any: [{ not: { claim: groups, any_of: [a] } }] }] }'),
    ],
    /require: compares groups with "a"/,
  ],
  [
    [issuer(`${entra}/v2.0`), rule('require: { email_domains: [example.com] }')],
    /reads email_verified.*Entra ID does not issue it.*require a claim that it has/,
  ],
  [
    [rule(`require: { claim: '"urn:zitadel:iam:org:project:roles"', any_of: [admin] }`)],
    /is a map of organizations.*Action of Zitadel.*write groups$/,
  ],
  [[header('\'"urn:zitadel:iam:org:project:123:roles".admin\'')], /is a map of organizations/],
  [
    [rule('require: { claim: groups, equals: admins }')],
    /equals: compares the whole list: .*further value in groups.*write any_of: \[admins\] in place of equals$/,
  ],
  [
    [rule("require: { not: { claim: realm_access.roles, equals: '/a b' } }")],
    /equals: compares the whole list.*write any_of: \['\/a b'\]/,
  ],
  [
    [rule('require: [{ claim: email, equals: a@example.com }, { claim: email, equals: b@example.com }]')],
    /require: can never be met: its conditions about email exclude each other.*write any_of: \[a, b\], or any/,
  ],
  [
    [rule('require: { all: [{ claim: sub, any_of: [a] }, { claim: sub, none_of: [a, b] }] }')],
    /can never be met: .* sub/,
  ],
  [[rule('require: { claim: sub, all_of: [a, b], none_of: [b] }')], /can never be met/],
  [[rule('require: { claim: sub, equals: a, all_of: [b] }')], /can never be met/],
  [
    [rule('networks: [10.0.0.0/8], require: { networks: [192.168.0.0/16, "fd00::/8"] }')],
    /can never be met: no address is in all of its networks/,
  ],
  [
    [rule('require: [{ networks: [10.0.0.0/8] }, { networks: [10.1.0.0/16] }, { networks: [11.0.0.1] }]')],
    /can never be/,
  ],
  [
    [rule("require: { claim: groups, matches: '/^admin-.*$/i' }")],
    /has delimiters or flags; write admin-\.\*, without slash/,
  ],
  [
    [rule("require: { claim: groups, matches: '(?i)admin-.*' }")],
    /has delimiters or flags; write admin-\.\*, without slash/,
  ],
  [
    [rule("require: { claim: groups, matches: '/admin-.*/i' }")],
    /has slashes around it.*write admin-\.\*, without slashes/,
  ],
  [[['tracing', '{ otlp: "https://collector:4317" }']], /otlp: has port 4317.*gRPC only; write port 4318/],
  [
    [['provider.client_secret'], ['provider.token_endpoint_auth_method', 'none']],
    /token_endpoint_auth_method: must be one of.*the gateway is a confidential client/,
  ],
  [
    [['upstreams.orders.response_headers', '{ hsts: "max-age=31536000; includeSubDomains" }']],
    /hsts: must be a duration.*write hsts: 365d.*write set: \{ Strict-Transport-Security/,
  ],
  [
    [['upstreams.orders.response_headers', `{ frame_ancestors: ["'self'"] }`]],
    /frame_ancestors\[0\]: has quotes of its own: write self/,
  ],
  [[['session', '{ cookie: { same_site: none } }']], /same_site: must be lax.*write session\.embedded_in/],
  [[redis('host: redis, port: 6379')], /write url: rediss:\/\/redis:6379.*redis:\/\/ if this Redis has no TLS$/],
  [[redis('cluster: "redis://r1:6379", database: 2')], /cluster: must be a list/],
  ...(
    [
      ['200', 'pass'],
      ['allow', 'pass'],
      ['deny', 'forbidden'],
      ['401', 'unauthorized'],
      ['302', 'sign_in'],
      ['404', 'no_route'],
      ['503', 'maintenance'],
    ] as const
  ).map(([expect, meant]): (typeof mistakes)[number] => [
    [['upstreams.orders.tests', `[{ get: /, expect: ${expect} }]`]],
    new RegExp(`expect: must be one of.*; write ${meant}`),
  ]),
  [[rule('access: public, respond: { redirect: /new }')], /redirect: unknown setting; write to: \/new\/\*$/],
  [[rule('access: public, respond: { body: Gone }')], /body: unknown setting; write text: Gone/],
  [
    [rule('access: public, respond: { to: "https://orders.example.com/admin/*" }')],
    /respond\.to: leads to this rule again/,
  ],
  [[['upstreams.orders.headers.X-Forwarded-Proto', 'https']], /only the gateway sets; remove it, or use another name/],
  [[issuer('https://acme-admin.okta.com')], /administration console of Okta.*acme\.okta\.com$/],
  [[issuer('https://acme.okta.com/oauth2/default/v1/authorize')], /endpoint \(authorize\).*oauth2\/default$/],
  [[issuer('https://acme.eu.auth0.com')], /lacks the slash/],
  [[issuer('https://auth.example.com/application/o/orders')], /is not the issuer of authentik.*orders\/$/],
  [[issuer('https://accounts.google.com/')], /ends with a slash/],
  [[issuer('https://acme.auth.eu-central-1.amazoncognito.com')], /sign-in pages of Amazon Cognito/],
  [[issuer('https://github.com')], /issues no ID Tokens.*write kind: oauth2/],
  [[issuer('https://orders.example.com')], /is external_url/],
  [[issuer('https://id.example.com/oauth2/token')], /is the address of an endpoint \(token\)/],
  [[['upstreams.orders.url', 'https://orders.example.com']], /is external_url, the address of the gateway/],
  [[['listen', '{ address: "0.0.0.0:8080", http2: true }']], /listen\.http2.*needs tls/],
  [[['listen', '0.0.0.0:443']], /has port 443, but no tls/],
  [[['listen', ':443']], /no host before the port.*set tls too/],
  [[['session', `{ keys: [{ env: SESSION_KEY }], store: { file: ${folder} } }`]], /is a folder.*sessions\.db$/],
  [[rule('access: signed_in')], /rules\[0\].*changes nothing/],
  [
    [rules('{ path: /admin/*, networks: [10.0.0.0/8] }', '{ path: /api/*, require: { claim: groups, any_of: [a] } }')],
    /rules\[0\].*changes nothing.*write require: \{ networks: \[10\.0\.0\.0\/8\] \}/,
  ],
  [[rules('{ path: /a/*, access: public }', '{ path: /*, networks: [10.0.0.0/8] }')], /rules\[1\].*changes nothing/],
  [
    [rule('methods: [GET], require: { claim: groups, any_of: [admins] }')],
    /rules\[0\]\.methods.*POST, is open to everybody who is signed in.*remove methods/,
  ],
  [
    [rules('{ path: /*, methods: [GET], access: public }', '{ path: /admin/*, require: { networks: [10.0.0.0/8] } }')],
    /rules\[1\].*GET \/admin\/\* is open to everybody \(rules\[0\]\).*before rules\[0\]/,
  ],
  [[['provider.claims_from', groupsFromApi]], /asks for groups, which no header and no rule reads/],
  [[header('groups[0]')], /reads one entry of the list groups.*write groups, without \[0\]/],
  [[rule('require: { claim: "realm_access.roles[0]", any_of: [admins] }')], /write realm_access\.roles, without \[0\]/],
  [[header('"{{ .Claims.email }}"')], /did you mean "\{email\}"/],
  [[rule("require: { claim: groups, any_of: ['admins,editors'] }")], /one value.*write any_of: \[admins, editors\]/],
  [
    [rule("require: { claim: groups, equals: 'admins, editors' }")],
    /equals: is one value.*any_of: \[admins, editors\]/,
  ],
  [[rule("require: { claim: groups, any_of: ['*'] }")], /any_of\[0\].*no wildcard.*write matches: '\.\+'/],
  [
    [rule("require: { claim: email, any_of: ['*@example.com'] }")],
    /no wildcard.*write email_domains: \[example\.com\]/,
  ],
  [[rule("require: { claim: groups, begins_with: 'team-*' }")], /begins_with: .*no wildcard.*write 'team-'/],
  [[rule("require: { claim: groups, matches: 'team-*' }")], /matches: ends with \*.*write matches: 'team-\.\*'/],
  [
    [rule('require: { not: { claim: groups, any_of: [CN=admins,OU=groups,DC=example,DC=com] } }')],
    /any_of: looks like one distinguished name.*any_of: \["CN=admins,OU=groups,DC=example,DC=com"\]/,
  ],
  [
    [['upstreams.orders.url', 'http://app.internal:443/base']],
    /is http at the port of https.*https:\/\/app\.internal\/base/,
  ],
  [[['upstreams.orders.url', 'https://app.internal:80']], /is https at the port of http;.*http:\/\/app\.internal,/],
  [
    [
      ['listen', '0.0.0.0:8080'],
      ['external_url', 'https://orders.example.com:8080'],
    ],
    /external_url: is https at port 8080.*without TLS.*set listen\.tls/,
  ],
  [
    [
      [
        'listen',
        `{ address: "0.0.0.0:8443", tls: { cert_file: ${cases}tls/gateway.crt, key_file: ${cases}tls/gateway.key } }`,
      ],
      ['external_url', 'http://orders.example.com:8443'],
    ],
    /external_url: is http, but listen has tls.*write https:\/\/orders\.example\.com:8443/,
  ],
  [[header('prefered_username')], /prefered_username.*typing mistake.*"preferred_username"/],
  [[header('emai')], /"email"/],
  [[header('realm_access')], /realm_access, which is a map.*write realm_access\.roles$/],
  [[rule('require: { claim: realm_access.role, any_of: [a] }')], /no member.*write realm_access\.roles$/],
  [[rule('require: { claim: resource_access.orders, any_of: [a] }')], /a map.*write resource_access\.orders\.roles$/],
  [
    [rules('{ path: /static/, access: public }')],
    /rules\[0\]\.path: is this one page.*\/static\/x needs a sign-in; write \/static\/\*$/,
  ],
  [[rules('{ path: /app/assets, access: optional }')], /write \/app\/assets\/\*$/],
  [
    [rule("require: { claim: email, ends_with: '@example.com' }")],
    /end of email.*write email_domains: \[example\.com\]/,
  ],
  [
    [rule("require: { all: [{ claim: email, matches: '.*@example\\.com$' }] }")],
    /write email_domains: \[example\.com\]/,
  ],
  [
    [rule('require: { claim: email, any_of: [example.com, example.org] }')],
    /email_domains: \[example\.com, example\.org\]/,
  ],
  [[rule('access: deny')], /access: must be one of.*write respond: \{ status: 403 \} in place of access$/],
  [[rule('access: authenticated')], /write access: signed_in/],
  [[rule('access: bypass')], /write access: public$/],
  [[rule('access: [public]')], /write access: public, which is no list$/],
  [[['trusted_proxies', '1']], /write the addresses or networks.*trusted_proxies: \[10\.0\.0\.0\/8\]$/],
  [[['trusted_proxies', '[1]']], /trusted_proxies\[0\].*write the addresses or networks/],
  [[['trusted_proxies', '["http://10.1.2.3:80"]']], /write 10\.1\.2\.3, without scheme and port$/],
  [[['trusted_proxies', '{ hops: 1 }']], /must be a list.*for example trusted_proxies: \[/],
  [
    [['upstreams.orders.path', '/shop/'], rule('access: public')],
    /never reached.*write the path that clients use: \/shop\/admin\/\*$/,
  ],
  [
    [['session.cookie.domain', 'example.org']],
    /session\.cookie\.domain: does not include orders\.example\.com.*domain: example\.com/,
  ],
  [
    [
      ['session.cookie.domain', 'example.com'],
      ['upstreams.orders.external_url', 'https://orders.example.org'],
    ],
    /orders\.external_url: is not below.*write a host below example\.com, or remove/,
  ],
  [
    [
      ['session.cookie.domain', 'a.example.com'],
      ['upstreams.orders.external_url', 'https://b.a.example.com'],
    ],
    /^external_url: is not below.*write a host below a\.example\.com, or write session\.cookie\.domain: example\.com/,
  ],
  [
    [['upstreams.orders.url'], ['upstreams.orders.targets', '[{ host: 10.1.1.1, port: 81 }]']],
    /targets\[0\]\.host: unknown setting, like port; write url: http:\/\/10\.1\.1\.1:81$/,
  ],
  [
    [['upstreams.orders.url'], ['upstreams.orders.targets', '{ host: 10.1.1.1, port: 81 }']],
    /host: unknown setting, like port; write targets: \[http:\/\/10\.1\.1\.1:81\]$/,
  ],
  [[['listen', '{ host: 127.0.0.1, port: 81 }']], /host: unknown setting, like port; write address: 127\.0\.0\.1:81$/],
  [[['listen', '{ host: 127.0.0.1 }']], /write address: 127\.0\.0\.1:8080$/],
  [[['port', '9000']], /write listen: 0\.0\.0\.0:9000$/],
  [[['upstreams.orders.health_check', '{ path: /health, interval: 10s }']], /interval.*write every: 10s$/],
  [[['upstreams.orders.health_check', '{ path: /health, period_seconds: 20 }']], /write every: 20s$/],
  [[['upstreams.orders.health_check', '{ path: /health, status: 204 }']], /write expect: \[204\]$/],
  [[['upstreams.orders.rules', '[{ location: /api, access: public }]']], /write path: \/api\/\*$/],
  [[['upstreams.orders.url'], ['upstreams.orders.backend', 'app:3000']], /write url: http:\/\/app:3000$/],
  [
    [['provider.issuer'], ['provider.authority', 'https://login.example.com/x']],
    /write issuer: https:\/\/login\.example\.com\/x,/,
  ],
  [
    [['upstreams.orders.logout', '{ paths: ["https://id.example.com/logout"] }']],
    /logout\.paths\[0\].*the logout link of the application.*signs people out at the provider$/,
  ],
  [[['upstreams.orders.logout', '{ paths: ["https://orders.example.com/a?b=c"] }']], /path: \/a, query: \{ b: c \}/],
  [[['upstreams.orders.logout', '{ paths: "https://id.example.com/logout" }']], /for example paths: \[\/logout\]$/],
  [[['upstreams.orders.hosts', '[ordres.example.com]']], /did you mean orders\.example\.com\? Otherwise/],
  [
    [['upstreams.orders.hosts', '[shop.example.com]']],
    /in place of hosts, write external_url: https:\/\/shop\.example\.com$/,
  ],
  [[header('"{given_name} {famly_name}"')], /famly_name.*"family_name"/],
  [[rule('require: { claim: gruops, any_of: [admins] }')], /gruops.*"groups"/],
  [[rule('require: { claim: realm_acess.roles, any_of: [admins] }')], /"realm_access\.roles"/],
  [
    [
      ['provider.claims_from', groupsFromApi.replace('as: groups', 'as: costcenters')],
      header('costcenter_s'),
      rule('require: { claim: costcenters, any_of: [a] }'),
    ],
    /costcenter_s.*"costcenters"/,
  ],
  [[['upstreams.orders.protocol', 'http2']], /must be one of http1, h2, h2c.*write protocol: h2/],
  [[['upstreams.orders.http2', 'true']], /unknown setting.*write protocol: h2 for HTTP\/2 over TLS/],
  [[['upstreams.orders.grpc', 'true']], /unknown setting.*h2c for HTTP\/2 without TLS/],
  [[['upstreams.orders.url', 'grpc://127.0.0.1:5000']], /must not begin with grpc.*protocol: h2c/],
  [[['listen.client_certificate', 'required']], /unknown setting.*client_ca_file/],
  [[['client_certificate', 'required']], /unknown setting.*client_ca_file/],
  [
    [['listen', `{ tls: { cert_file: ${cases}tls/gateway.key, key_file: ${cases}tls/gateway.crt } }`]],
    /contains the private key, and key_file the certificate.*exchange/,
  ],
  [[['provider.pkce', 'true']], /unknown setting.*always uses PKCE/],
  [[['provider.tls_verify', 'false']], /unknown setting.*checks cannot be switched off/],
  [[['upstreams.orders.proxy_ssl_verify', 'off']], /unknown setting.*checks cannot be switched off/],
  [
    [issuer('x'), ['provider.issuer'], ['provider.discovery_url', 'https://id.example.com']],
    /discovery_url.*write issuer/,
  ],
  [[['provider.issuer'], ['provider.authority', 'https://id.example.com']], /authority.*write issuer/],
  [[['provider.client_secret'], ['provider.client_secret_env', 'X']], /client_secret_env.*write client_secret: \{ env/],
  [[['provider.groups_claim', 'groups']], /unknown setting.*name the claim where it is used/],
  [[['provider.prompt', 'login']], /write authorization_params: \{ prompt: … \}/],
  [[redis('host: redis, port: 6379')], /redis\.host: unknown setting.*write url: rediss/],
  [[redis('url: "rediss://redis:6379", tls: true')], /redis\.tls.*write url: rediss/],
  [[['upstreams.orders.X-Frame-Options', 'DENY']], /write response_headers: \{ set: \{ X-Frame-Options/],
  [[['upstreams.orders.response_headers', '{ X-Frame-Options: DENY }']], /write set: \{ X-Frame-Options/],
  [[['upstreams.orders.headers.X-Frame-Options', 'DENY']], /is a header of responses.*write response_headers/],
  [[['X-Frame-Options', 'DENY']], /write it in an upstream: response_headers/],
  [[['upstreams.orders.health_check', '{ path: /health, interval: 5s }']], /interval.*write every: 5s/],
  [[['upstreams.orders.health_check', '{ url: /health }']], /url: unknown setting.*write path: \/health/],
  [[header('{ claim: groups, separator: "," }')], /separator.*write join/],
  [[rule('respond: { maintenance: "text" }')], /maintenance: must be true, or settings/],
  [[['upstreams.orders.maintenance', 'true']], /write a rule:.*maintenance: true/],
  [[['upstreams.orders.url'], ['upstreams.orders.targets', 'text']], /targets: must be a list of addresses/],
  [[['upstreams.orders.targets', 'text']], /targets: must be a list of addresses/],
  [[['provider.kind', 'keycloak']], /must be one of openid, oauth2.*write kind: openid/],
  [[remove('X-Forwarded-*')], /is the beginning of headers that only the gateway sets/],
  [[remove('x_forwarded_*')], /is the beginning of headers that only the gateway sets/],
  [[remove('X-Forwarded*')], /is the beginning of headers that only the gateway sets/],
  [[remove('X_Forwarded_For')], /is a header that only the gateway sets/],
  [[remove('Content_Length')], /is a header that only the gateway sets/],
  [[remove('OIDC_')], /write OIDC_\*/],
  [[['upstreams.orders.response_timeout', '500']], /write 500ms or 500s/],
  [[['session', '{ idle_timeout: 30 }']], /; write 30s$/],
  [[['session', '{ idle_timeout: 12 hours }']], /; write 12h$/],
  [[['session', '{ idle_timeout: 1h30m }']], /; write 90m$/],
  [[['session', '{ absolute_timeout: 2 weeks }']], /; write 14d$/],
  [[['limits', '{ header_size: 8k }']], /; write 8kb$/],
  [[['limits', '{ header_size: 8 KiB }']], /; write 8kb$/],
  [[['limits', '{ per_client: { sign_ins: 10r/s } }']], /; write 10\/s$/],
  [[['limits', '{ per_client: { sign_ins: 10 per minute } }']], /; write 10\/m$/],
  [[store('redis://redis:6379')], /write store: \{ redis: \{ url: redis:\/\/redis:6379 \} \}/],
  [[store('redis:6379')], /write store: \{ redis: \{ url: redis:\/\/redis:6379 \} \}/],
  [[store('redis://:hidden@cache:6379')], /write store: \{ redis: \{ url: rediss:\/\/redis:6379, password: \{ env: /],
  [[store('{ redis: "redis:6379" }')], /write redis: \{ url: redis:\/\/redis:6379 \}/],
  [[store('{ redis: { url: "cache:6379" } }')], /; write redis:\/\/cache:6379$/],
  [[store(`{ file: ${folder}/missing/sessions.db }`)], /session\.store\.file: is in a folder that does not exist/],
  [[store('file:/var/lib')], /write store: \{ file: \/var\/lib\/sessions\.db \}/],
  [[store('/var/lib/gatehouse/a.db')], /write store: \{ file: \/var\/lib\/gatehouse\/a\.db \}/],
  [[['session', '{ keys: { env: SESSION_KEY } }']], /write keys: \[\{ env: SESSION_KEY \}\]/],
  [[['listen', 'https://0.0.0.0:443']], /write 0\.0\.0\.0:443, and listen\.tls/],
  [[['listen', 'http://0.0.0.0:8080']], /write 0\.0\.0\.0:8080; $/],
  [[['trusted_proxies', '[nginx]']], /a host name is not possible here/],
  [[rule('require: valid-user')], /remove it: every rule requires a sign-in/],
  [[['skip_provider_button', 'true']], /remove it: the gateway redirects to the provider at once/],
  [[['skip_auth_regex', '^/api']], /unknown setting; write a rule of an upstream/],
  [[['skip_auth_preflight', 'true']], /for preflights, write cors/],
  [[['skip_jwt_bearer_tokens', 'true']], /write access_tokens: \{ audience/],
  [[['skip_auth_strip_headers', 'true']], /always removes the identity headers/],
  [[['provider.skip_oidc_discovery', 'true']], /write metadata below provider/],
  [[['insecure_oidc_allow_unverified_email', 'true']], /only a rule with email_domains reads email_verified/],
  [[['insecure_oidc_skip_nonce', 'true']], /always checks the issuer and the nonce/],
  [[['ssl_insecure_skip_verify', 'true']], /checks cannot be switched off.*use ca_file/],
  [[['disable_http2', 'true']], /unknown setting; settings here/],
  [
    [['redis', '{ url: "redis://redis:6379" }']],
    /write session: \{ store: \{ redis: \{ url: redis:\/\/redis:6379 \} \} \}/,
  ],
  [
    [['redis', 'redis://:hidden@redis:6379']],
    /write session: \{ store: \{ redis: \{ url: rediss:\/\/redis:6379 \} \} \}/,
  ],
  [[['redis', '{ url: "http://127.0.0.1:8001" }']], /an upstream belongs below upstreams/],
  [
    [['listen', '{ address: "0.0.0.0:443", tls: { certificate: a, key_file: tls/gateway.key } }']],
    /certificate: unknown.*write cert_file: PATH/,
  ],
  [[['upstreams.orders.host', 'a.example.com']], /unknown setting; write host_header: upstream.*or hosts: /],
  [[['client_max_body_size', '8m']], /remove it: the size of a body has no limit/],
  [[['limits', '{ max_body_size: 8mb }']], /remove it: the size of a body has no limit/],
  [[['upstreams.orders.proxy_buffering', 'off']], /remove it: the gateway passes on each part/],
  [[['upstreams.orders.proxy_http_version', '1.1']], /without it, the gateway uses HTTP\/1\.1/],
  [[['upstreams.orders.proxy_ssl_trusted_certificate', 'a.crt']], /write ca_file: PATH/],
  [[issuer('${ISSUER}')], /it is a template that was not filled in.*a configuration has no variables/],
  [[['upstreams.orders.url', '"{{ .Values.url }}"']], /it is a template that was not filled in; render the file first/],
  [[['provider.client_secret', '${CLIENT_SECRET}']], /it is a template.*a secret is \{ env: NAME \}/],
  [[['provider.client_secret', '{ env: "${CLIENT_SECRET}" }']], /write the name alone, without "\$" and braces$/],
  [[['external_url', '“https://orders.example.com”']], /curly quotation marks are part of the value/],
  [
    [rule('access: public'), ['upstreams.orders.rules', '[{ path: "*", access: public }]']],
    /for every path, write \/\*$/,
  ],
  [
    [['provider.claims', '{ "https://id.example.com/fields": fields }'], header('fields')],
    /the short name comes first: write fields: CLAIM$/,
  ],
  [[header('given_name family_name')], /write a template: '\{given_name\} \{family_name\}'$/],
  [[rule('require: { claim: "{groups}", any_of: [admins] }')], /did you mean "groups"\?$/],
  [[rule('require: { claim: groups, equals: [admins] }')], /for a list, write any_of in place of equals$/],
  [[['provider.client_id', '<your-client-id>']], /client_id: is a placeholder/],
  [[['pages', '{ name: "{$NAME}" }']], /pages\.name: is a template that was not filled in; render the file first/],
  [[header('${REMOTE_USER}')], /is a template that was not filled in; render/],
  [[rule('require: { claim: groups, any_of: ["$ADMINS"] }')], /any_of\[0\]: is a template that was not filled in/],
  [[['upstreams.orders.headers.X-Name', '{ value: email }']], /is sent as it is; write claim: email/],
  [
    [['upstreams', '{ url: "http://127.0.0.1:3000", headers: { X-Remote-User: sub } }']],
    /upstreams: contains url, and not the name of an upstream.*write a name of your choice/,
  ],
  [
    [['upstreams.headers', '{ X-Name: name }']],
    /upstreams\.headers: is a setting of an upstream, and not a name; indent it/,
  ],
  [
    [['upstreams.rules', '[{ path: /a, access: public }]']],
    /upstreams\.rules: is a setting of an upstream, and not a name/,
  ],
  [
    [
      ['tracing', '{}'],
      ['otlp', 'http://127.0.0.1:4318'],
    ],
    /otlp: unknown setting; it belongs below "tracing"$/,
  ],
  [
    [
      ['provider'],
      [
        'provider',
        '{ issuer: https://id.example.com, signals: { client_id: a }, client_secret: { env: CLIENT_SECRET } }',
      ],
    ],
    /signals\.client_id: unknown setting; it belongs below "provider"/,
  ],
  [[['limits', '{ connections: 500, per_client: { connections: many } }']], /must be a whole number/],
  [
    [
      [
        'pages',
        `{ templates: ${cases}pages/own, logo: true, name: Orders, support: { text: Help, mail: help@example.com } }`,
      ],
    ],
    /pages\.logo: must be the path of an image/,
  ],
  [
    [
      ['session.cookie.domain', 'example.org'],
      ['upstreams.orders.hosts', '[orders.example.com, a.example.com]'],
    ],
    /session\.cookie\.domain: does not include/,
  ],
  [
    [
      ['session.cookie.domain', 'example.org'],
      ['external_url', 'https://shop.co.uk'],
    ],
    /session\.cookie\.domain: does not include shop\.co\.uk.*there; remove session\.cookie\.domain$/,
  ],
  [[['session', '{ idle_timeout: "" }']], /idle_timeout: must be a duration.* d; $/],
  [[header('{ template: "$REMOTE_USER" }')], /has no claim in braces.*it is a template that was not filled in/],
  [[['provider.client_id'], ['client_id', 'orders']], /client_id: unknown setting; write provider: /],
  [
    [
      ['provider.client_secret', '{}'],
      ['provider.env', 'CLIENT_SECRET'],
    ],
    /provider\.env: unknown setting/,
  ],
  [[['upstreams.orders.url'], ['upstreams.orders.ur', 'http://127.0.0.1:3000']], /did you mean "url"/],
  [[['listen', '"[::]:8443"']], /write listen: \{ address: "\[::\]:8443"/],
  [
    [['provider.kind', 'oauth'], issuer('https://github.com'), ['provider.subject', 'id']],
    /kind: must be one of.*did you mean "oauth2"/,
  ],
  [[['provider', 'true']], /for example provider: \{ issuer: .*client_secret: \{ env: CLIENT_SECRET \} \}$/],
  [[['provider.scopes', '[email]']], /must contain "openid"; write scopes: \[openid, email\]$/],
  [[['provider.ca_file', '[a.crt]']], /write ca_file: a\.crt, which is no list$/],
  [[['provider.ca_file', 'true']], /must be the path of a file; for example ca_file: \/run\/tls\/ca\.crt$/],
  [[['session', '{ cookie: { name: null } }']], /has no value; it must be .*for example name: gatehouse$/],
  [
    [['upstreams.orders.health_check', 'https://app.example.com/health']],
    /health_check: must be a path such as \/health/,
  ],
  [[['upstreams.orders.health_check', '{ uri: /health }']], /uri: unknown setting; write path: \/health$/],
  [[['upstreams.orders.logout', '{ paths: [{ link: /bye }] }']], /link: unknown setting; write path/],
  [[['upstreams.orders.authorize_with', '{ url: "" }']], /authorize_with\.url: must be an http or https URL/],
  [
    [['upstreams.orders.access_tokens', 'true'], rule('access_tokens: {}')],
    /orders\.access_tokens: must be a map of settings; for example/,
  ],
  [[rule('require: { claim: [], any_of: [a] }')], /claim: must be a claim path such as/],
  [[rule('respond: { to: true, status: 301 }')], /respond\.to: must be a URL such as/],
  [[['upstreams.orders.signed_identity', '{ lifetime: 1 day }']], /; write 1h or less$/],
  [[['provider.client_id', '${CLIENT_ID}']], /client_id: is a template that was not filled in; .* has no variables/],
  [[['provider.client_id', '"orders "']], /client_id: begins or ends with a space; remove it$/],
  [[['listen', '8443 ssl']], /for https, set listen\.tls/],
]

test('The file without a mistake has no diagnostic', () => {
  assert.deepEqual(diagnosticsOf([]), [])
})

for (const [changes, first] of mistakes)
  test(`The first line is about the mistake: ${JSON.stringify(changes)}`, () => {
    const [diagnostic, ...others] = diagnosticsOf(changes)

    assert.match(`${diagnostic?.path}: ${diagnostic?.message}; ${diagnostic?.hint ?? ''}`, first)
    assert.deepEqual(others, [])
  })

const secretFile = (file: string): Change => ['provider.client_secret', `{ file: ${file} }`]

for (const [file, first] of [
  ['missing', /missing does not exist; a relative path begins at the folder of this file$/],
  [`${folder}/missing`, /missing does not exist; create it, or correct the path$/],
  [`${folder}/empty`, /empty is empty; write the secret there, as one line of text$/],
] as const)
  test(`The first line about the file of a secret says what to do: ${file.replace(folder, '')}`, () => {
    writeFileSync(join(folder, 'empty'), '')

    const [diagnostic] = diagnosticsOf([secretFile(file)])

    assert.match(`${diagnostic?.message}; ${diagnostic?.hint}`, first)
  })

test('The first line about a secret that another user owns names both users, and the mode', () => {
  const file = join(folder, 'secret')
  writeFileSync(file, 'secret', { mode: 0o400 })
  diagnosticsOf([])
  const isRoot = process.geteuid?.() === 0
  chmodSync(folder, 0o755)
  chmodSync(join(folder, 'gateway.yaml'), 0o666)
  if (isRoot) process.seteuid?.(65_534)
  else chmodSync(file, 0)
  try {
    const [diagnostic] = diagnosticsOf([secretFile(file)])

    const user = process.geteuid?.()
    assert.match(String(diagnostic?.message), /secret may not be read by this user$/)
    assert.equal(
      diagnostic?.hint,
      `its owner is user ${isRoot ? 0 : user}, its mode ${isRoot ? '400' : '0'}, and this process is user ${user}: chown ${user} ${file}, and chmod 400`,
    )
  } finally {
    if (isRoot) process.seteuid?.(0)
  }
})

const url = '    url: http://127.0.0.1:3000\n'
const headers = '    headers: { X-Remote-User: sub }\n'

/** Mistakes in the syntax: each has one error, and the lines below it have none. */
const misspelt: readonly (readonly [right: string, wrong: string, first: RegExp])[] = [
  [
    headers,
    '    headers:\n      X-Name: {given_name} {family_name}\n      X-Groups: groups\n    rules:\n      - { path: /* }\n',
    /^11: .*put the whole value in quotes: '…'$/,
  ],
  [headers, '    headers:\n\tX-A: sub\n      X-Email: email\n    rules: []\n', /^11: a tab cannot indent/],
  [url, '  url: http://127.0.0.1:3000\n', /^9: "orders" has nothing below it; indent url further$/],
  [
    'upstreams:',
    'pages:\n  colours:\n    light: { accent: #8a1538 }\nupstreams:',
    /^9: the "\{" here is not closed; " #" beg/,
  ],
  ['provider:', 'trusted_proxies: [10.0.0.0/8\nprovider:', /^3: the "\[" here is not closed; close it/],
  [url, '    url: {{ .Values.url }}\n', /^9: is a template that was not filled in; render the file first/],
  [url, '    url: {{ .Values.url }}/api\n', /^9: is a template that was not filled in; render the file first/],
  [headers, `${headers}    rules: [{ path: *, access: public }]\n`, /^11: .*; for every path, write \/\*$/],
  [
    valid,
    `apiVersion: v1\nkind: ConfigMap\ndata:\n  gateway.yaml: |\n${valid.replaceAll(/^/gm, '    ')}`,
    /^0: is a Kubernetes object, so nothing of it is shown; the configuration is the text below data/,
  ],
]

for (const [right, wrong, first] of misspelt)
  test(`The only line is about the mistake in the syntax: ${JSON.stringify(wrong)}`, () => {
    const [diagnostic, ...others] = diagnosticsOfText(valid.replace(right, () => wrong))

    assert.match(`${diagnostic?.line}: ${diagnostic?.message}; ${diagnostic?.hint ?? ''}`, first)
    assert.deepEqual(others, [])
  })

/** What is right, and resembles a mistake. */
const right: readonly (readonly Change[])[] = [
  [issuer(`${entra}/v2.0`)],
  [issuer(`${entra}/v2.0`), ['provider.id_token_claims', '[oid]'], header('oid')],
  [issuer(`${entra}/v2.0`), ['provider.claims_from', groupsFromApi], header('groups')],
  [issuer('https://dex.example.com/dex'), ['provider.scopes', '[openid, groups]'], header('groups')],
  [issuer(cognito), ['provider.id_token_claims', '["cognito:groups"]'], header('cognito:groups')],
  [issuer(cognito), header('department')],
  ...['11111111-2222-3333-4444-555555555555', 'EXAMPLE\\admins'].map((group): readonly Change[] => [
    issuer(`${entra}/v2.0`),
    ['provider.id_token_claims', '[groups]'],
    rule(`require: { claim: groups, any_of: ['${group}'] }`),
  ]),
  [issuer(`${entra}/v2.0`), ['provider.claims_from', groupsFromApi], rule('require: { claim: groups, any_of: [a] }')],
  [header(`{ claim: '"urn:zitadel:iam:org:project:roles"', json: true }`)],
  [rule('require: { claim: role, equals: admin }')],
  [rule('require: [{ claim: sub, any_of: [a, b] }, { claim: sub, any_of: [b] }, { claim: sub, none_of: [a] }]')],
  [rule('require: { any: [{ claim: sub, equals: a }, { claim: sub, equals: b }] }')],
  [rule('networks: [10.0.0.0/8], require: { networks: [10.1.0.0/16, 192.168.0.0/16] }')],
  [rule("require: { claim: groups, matches: '/teams/.*|/i|(?:a)' }")],
  [['tracing', '{ otlp: "http://127.0.0.1:4318" }']],
  [issuer(`${entra}/v2.0`), header('{ first_of: [preferred_username, email] }')],
  [issuer('https://acme.okta.com'), ['provider.scopes', '[openid, groups]'], header('groups')],
  [issuer('https://sts.windows.net/11111111-2222-3333-4444-555555555555/')],
  [issuer('https://id.example.com/realms/token')],
  [issuer('https://acme.eu.auth0.com/')],
  [issuer('https://acme.okta.com/oauth2/default')],
  [issuer('https://auth.example.com/application/o/orders/')],
  [issuer('http://127.0.0.1:8080/auth/realms/shop')],
  [rule("require: { claim: groups, any_of: ['CN=admins,DC=example', 'Doe, John', '/teams/*'] }")],
  [rule("require: { claim: permissions, any_of: ['*', 'orders:*'] }")],
  [rule("require: { claim: groups, matches: '[a-z]*|(team-)*|team-\\w*' }")],
  [issuer(google), header('email'), rule('require: { claim: hd, any_of: [example.com] }')],
  [issuer(google), ['provider.claims_from', groupsFromApi], header('groups')],
  [issuer(`${entra}/v2.0`), rule("require: { claim: email, ends_with: '@example.com' }")],
  [rule("require: { not: { claim: email, ends_with: '@example.com' } }")],
  [header('{ claim: realm_access, json: true }')],
  [rules('{ path: /new/*, access: public }', '{ path: /*, access: public, respond: { to: /new/* } }')],
  [
    ['upstreams.app', '{ url: "http://127.0.0.1:3001", path: /app/ }'],
    rules('{ path: /*, access: public, respond: { to: /app/* } }'),
  ],
  [
    ['upstreams.orders.hosts', '[orders.example.com]'],
    ['upstreams.old', '{ hosts: [old.example.com], external_url: "https://old.example.com" }'],
    ['upstreams.old.rules', '[{ path: /*, access: public, respond: { to: "https://orders.example.com/*" } }]'],
  ],
  [header('resource_access.orders.roles')],
  [rules('{ path: /static/, access: public }', '{ path: /static/*, access: public }')],
  [rules('{ path: /health/, access: public }', '{ path: /login, access: public }')],
  [rules('{ path: /static/, respond: { to: /assets/ }, access: public }')],
  [issuer('https://acme.okta.com/oauth2/aus1a2b3c4')],
  [header('role')],
  [header('mail')],
  [header('emails[0]')],
  [header('team')],
  [store(`{ file: ${folder}/sessions.db }`)],
  [store('{ file: /var/lib/gatehouse/sessions.db }')],
  [remove('X-*')],
  [remove('X_Deployer_*')],
  [remove('Cookie')],
  [header('username')],
  [['upstreams.orders.rules', '[{ path: /api/* }, { path: "/*", access: public }]']],
  [rules('{ path: /admin/*, networks: [10.0.0.0/8] }', '{ path: /*, access: public }')],
  [rules('{ path: /a/*, methods: [GET], access: public }', '{ path: /a/*, require: { networks: [10.0.0.0/8] } }')],
  [rule('methods: [POST], require: { claim: groups, any_of: [admins] }')],
  [
    rules(
      '{ path: /a/*, methods: [GET], require: { claim: groups, any_of: [readers, editors] } }',
      '{ path: /a/*, require: { claim: groups, any_of: [editors] } }',
    ),
  ],
  [['provider.claims_from', groupsFromApi], header('groups')],
]

for (const changes of right)
  test(`There is no false alarm about ${JSON.stringify(changes)}`, () => {
    assert.deepEqual(diagnosticsOf(changes), [])
  })
