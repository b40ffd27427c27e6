import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { parse, stringify } from 'yaml'
import { readFlatToml } from '../../packages/import/common/flat-toml.ts'
import { translate } from '../../packages/import/oauth2-proxy/oauth2-proxy.ts'
import { claimsIn } from '../../src/config/claims-in-use.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { GatewayConfig } from '../../src/config/model/gateway.ts'
import { failingTests } from '../../src/explain/embedded-tests.ts'
import { folderWith } from '../support/command-line.ts'
import { formatDiagnostics } from '../support/diagnostics.ts'

const env = {
  CLIENT_SECRET: 'correct horse battery',
  SESSION_KEY: Buffer.alloc(32, 7).toString('base64'),
  REDIS_PASSWORD: 'a password of Redis',
  SENTINEL_PASSWORD: 'a password of Sentinel',
}

/** The options that each of these files has. */
const usual = `
provider = "oidc"
oidc_issuer_url = "https://id.example.com"
client_id = "orders"
client_secret = "hidden in the file"
cookie_secret = "hidden in the file"
redirect_url = "https://orders.example.com/oauth2/callback"
upstreams = ["http://127.0.0.1:3000/"]
`

const google = usual.replace('"oidc"', '"google"').replace(/^oidc_issuer_url.*\n/m, '')

function translated(toml: string) {
  const { yaml, notes } = translate(readFlatToml(toml), undefined)
  return { yaml, notes, said: (option: string) => notes.find((note) => note.option === option) }
}

interface Case {
  readonly get?: string
  readonly post?: string
  readonly as?: object
  readonly expect: 'pass' | 'sign_in' | 'unauthorized' | 'forbidden'
}

/** The translated configuration with these tests, as `check` loads it. */
function loadedFrom(t: TestContext, toml: string, cases: readonly Case[] = []): GatewayConfig {
  const document = parse(translated(toml).yaml) as { upstreams: Record<string, { tests?: readonly Case[] }> }
  for (const upstream of Object.values(document.upstreams).slice(0, 1)) upstream.tests = cases
  const file = join(folderWith(t, { 'gateway.yaml': stringify(document) }), 'gateway.yaml')
  const loaded = loadConfig(file, env)
  assert.ok(loaded.ok, loaded.ok ? '' : formatDiagnostics(loaded.diagnostics))
  assert.equal(formatDiagnostics(failingTests(loaded.config)), '')
  return loaded.config
}

const jane = { sub: 'u1', email: 'jane@example.com' }

test('With any e-mail domain, all people have access, except with an unverified address', (t) => {
  loadedFrom(t, `${usual}email_domains = ["*"]`, [
    { get: '/', expect: 'sign_in' },
    { as: jane, get: '/', expect: 'pass' },
    { as: { ...jane, email_verified: true }, get: '/', expect: 'pass' },
    { as: { ...jane, email_verified: false }, get: '/', expect: 'forbidden' },
  ])
  loadedFrom(t, `${usual}email_domains = "*"\ninsecure_oidc_allow_unverified_email = true`, [
    { as: { ...jane, email_verified: false }, get: '/', expect: 'pass' },
  ])
})

test('Groups are required on all paths that are not open, with the claim of the file', (t) => {
  const toml = `${usual}email_domains = ["*"]
allowed_groups = ["staff", "admins"]
oidc_groups_claim = "https://id.example.com/groups"
skip_auth_routes = ["GET=^/static/", "^/health$"]
api_routes = ["^/api/"]`

  const config = loadedFrom(t, toml, [
    { as: { ...jane, 'https://id.example.com/groups': ['staff'] }, get: '/', expect: 'pass' },
    { as: { ...jane, groups: ['staff'] }, get: '/', expect: 'forbidden' },
    { as: { ...jane, 'https://id.example.com/groups': ['guests'] }, get: '/api/x', expect: 'forbidden' },
    { get: '/api/x', expect: 'unauthorized' },
    { get: '/static/logo.png', expect: 'pass' },
    { post: '/static/logo.png', expect: 'sign_in' },
    { get: '/health', expect: 'pass' },
    { get: '/healthy', expect: 'sign_in' },
  ])
  assert.deepEqual(config.providers[0].scopes?.includes('groups'), true)
})

for (const [what, toml] of Object.entries({
  'neither domains nor a file, which flags may have named': '',
  'a file of addresses': 'authenticated_emails_file = "emails.txt"',
  'domains and a file, at Google':
    'provider = "google"\nemail_domains = ["example.com"]\nauthenticated_emails_file = "emails.txt"',
  'groups that Google is asked for':
    'provider = "google"\nemail_domains = ["*"]\ngoogle_groups = ["staff@example.com"]',
  'an organization of GitHub': 'provider = "github"\nemail_domains = ["*"]\ngithub_org = "example"',
  'projects of GitLab': 'provider = "gitlab"\nemail_domains = ["*"]\ngitlab_projects = ["a/b"]',
}))
  test(`A restriction that rules cannot express denies all people until a decision: ${what}`, (t) => {
    const all = toml.includes('provider =') ? `${usual.replace(/^provider.*\n/m, '')}${toml}` : `${usual}${toml}`

    loadedFrom(t, `${all}\napi_routes = ["^/api/"]`, [
      {
        as: { ...jane, hd: 'example.com', groups: ['staff'], realm_access: { roles: ['reader'] } },
        get: '/',
        expect: 'forbidden',
      },
      { as: { ...jane, hd: 'example.com', groups: ['staff'] }, get: '/api/x', expect: 'forbidden' },
    ])
    const { notes, yaml } = translated(all)
    assert.ok(notes.some(({ level, text }) => level === 'decide' && text.includes('denies all people')))
    assert.match(yaml, /^# Decide before use:$/m)
  })

test('A domain of addresses is a requirement on the verified address', (t) => {
  const toml = `${usual}email_domains = ["example.com", ".example.org"]`
  const verified = { ...jane, email_verified: true }

  loadedFrom(t, toml, [
    { as: verified, get: '/', expect: 'pass' },
    { as: { ...verified, email: 'a@b.example.org' }, get: '/', expect: 'pass' },
    { as: { ...verified, email: 'a@example.org' }, get: '/', expect: 'forbidden' },
    { as: { ...verified, email: 'a@b.example.com' }, get: '/', expect: 'forbidden' },
    { as: { ...verified, email: 'a@evil.test@example.com' }, get: '/', expect: 'forbidden' },
    { as: jane, get: '/', expect: 'forbidden' },
  ])
  assert.match(String(translated(toml).said('email_domains')?.text), /email_verified: true/)
  loadedFrom(t, `${toml}\ninsecure_oidc_allow_unverified_email = true`, [{ as: jane, get: '/', expect: 'pass' }])
})

test('A person with one of the groups or one of the roles has access, as with oauth2-proxy', (t) => {
  const options = 'email_domains = ["*"]\nallowed_groups = ["g1", "g2"]\nallowed_roles = ["r1", "my.app:r2"]'
  const toml = usual.replace('"oidc"', '"keycloak-oidc"') + options

  loadedFrom(t, toml, [
    { as: { ...jane, groups: ['g2'] }, get: '/', expect: 'pass' },
    { as: { ...jane, realm_access: { roles: ['r1'] } }, get: '/', expect: 'pass' },
    { as: { ...jane, resource_access: { 'my.app': { roles: ['r2'] } } }, get: '/', expect: 'pass' },
    { as: { ...jane, resource_access: { my: { app: { roles: ['r2'] } } } }, get: '/', expect: 'forbidden' },
    { as: { ...jane, realm_access: { roles: ['r2'] } }, get: '/', expect: 'forbidden' },
    { as: jane, get: '/', expect: 'forbidden' },
  ])
  // Other providers of oauth2-proxy have no roles.
  loadedFrom(t, usual + options, [
    { as: { ...jane, groups: ['g2'] }, get: '/', expect: 'pass' },
    { as: { ...jane, realm_access: { roles: ['r1'] } }, get: '/', expect: 'forbidden' },
  ])
})

test('Domains at Google are checked with the claim hd', (t) => {
  loadedFrom(t, `${google}email_domains = ["example.com"]`, [
    { as: { ...jane, hd: 'example.com', email_verified: true }, get: '/', expect: 'pass' },
    { as: { ...jane, email: 'x@example.com' }, get: '/', expect: 'forbidden' },
  ])
})

for (const [what, options, cases] of [
  [
    'a person without an address',
    'email_domains = ["*"]',
    [
      { as: { sub: 'u1' }, get: '/', expect: 'forbidden' },
      { as: { sub: 'u1', email: '' }, get: '/', expect: 'forbidden' },
    ],
  ],
  [
    'a guest who has chosen the address, where another claim decides',
    'oidc_email_claim = "upn"\nemail_domains = ["example.com"]',
    [
      { as: { ...jane, email_verified: true, upn: 'guest@other.example' }, get: '/', expect: 'forbidden' },
      { as: { ...jane, email_verified: true }, get: '/', expect: 'forbidden' },
      { as: { sub: 'u1', upn: 'jane@example.com' }, get: '/', expect: 'pass' },
      { as: { sub: 'u1', upn: 'jane@evil.example@example.com' }, get: '/', expect: 'forbidden' },
      { as: { sub: 'u1', upn: 'jane@examplescom' }, get: '/', expect: 'forbidden' },
    ],
  ],
  [
    'a guest, where the older option names the other claim',
    'user_id_claim = "upn"\nemail_domains = ["example.com"]',
    [
      { as: { ...jane, email_verified: true, upn: 'guest@other.example' }, get: '/', expect: 'forbidden' },
      { as: { sub: 'u1', upn: 'jane@example.com' }, get: '/', expect: 'pass' },
    ],
  ],
  [
    'a person without the claim that replaces the address',
    'oidc_email_claim = "upn"\nemail_domains = ["*"]',
    [
      { as: jane, get: '/', expect: 'forbidden' },
      { as: { sub: 'u1', upn: 'jane' }, get: '/', expect: 'pass' },
    ],
  ],
  [
    'a person of the domain, where only those below it have access',
    'email_domains = ["*.sub.example.com"]',
    [
      { as: { ...jane, email: 'a@x.sub.example.com' }, get: '/', expect: 'pass' },
      { as: { ...jane, email: 'a@sub.example.com', email_verified: true }, get: '/', expect: 'forbidden' },
      { as: { ...jane, email: 'a@xsub.example.com', email_verified: true }, get: '/', expect: 'forbidden' },
      { as: { ...jane, email: 'a@x.sub.example.com', email_verified: false }, get: '/', expect: 'forbidden' },
    ],
  ],
  [
    'an address that is not verified, in the words of Go',
    'email_domains = ["*"]',
    ['False', '0', 0, 'f'].map((email_verified) => ({
      as: { ...jane, email_verified },
      get: '/',
      expect: 'forbidden',
    })),
  ],
  [
    'a person, where a variable may name the groups',
    'email_domains = ["*"]\nallowed_groups = ["${GROUP}"]',
    [
      { as: { ...jane, groups: ['${GROUP}', 'staff'] }, get: '/', expect: 'forbidden' },
      { as: jane, get: '/', expect: 'forbidden' },
    ],
  ],
  [
    'a person, where the file of addresses beside "*" may have been meant',
    'email_domains = ["*"]\nauthenticated_emails_file = "emails.txt"',
    [{ as: { ...jane, email_verified: true }, get: '/', expect: 'forbidden' }],
  ],
  [
    'a person in a folder that the gateway does not serve',
    'email_domains = ["*"]\nskip_auth_routes = ["^/docs/"]\nupstreams = ["http://127.0.0.1:3000/", "file:///srv/the%20docs#/docs/"]',
    [
      { as: jane, get: '/docs/a', expect: 'forbidden' },
      { get: '/docs/a', expect: 'sign_in' },
      { as: jane, get: '/', expect: 'pass' },
    ],
  ],
  [
    'anybody, by a domain with a space before it',
    'email_domains = "example.com, *"',
    [
      { as: { ...jane, email_verified: true }, get: '/', expect: 'pass' },
      { as: { sub: 'u2', email: 'joe@example.org', email_verified: true }, get: '/', expect: 'forbidden' },
    ],
  ],
  [
    'anybody, because the only domain has a space',
    'email_domains = " *"',
    [{ as: { ...jane, email_verified: true }, get: '/', expect: 'forbidden' }],
  ],
  [
    'a stranger at a route with a space',
    'email_domains = "*"\nskip_auth_routes = "^/a/, ^/b/"',
    [
      { get: '/a/x', expect: 'pass' },
      { get: '/b/x', expect: 'sign_in' },
    ],
  ],
  [
    'a person in a group with a space',
    'email_domains = "*"\nallowed_groups = "staff, admins"',
    [{ as: { ...jane, groups: ['admins'] }, get: '/', expect: 'forbidden' }],
  ],
  [
    'a person in a group that oauth2-proxy reads with another provider only',
    'email_domains = ["*"]\nallowed_groups = ["staff"]\nkeycloak_groups = ["guests"]',
    [
      { as: { ...jane, groups: ['staff'] }, get: '/', expect: 'pass' },
      { as: { ...jane, groups: ['guests'] }, get: '/', expect: 'forbidden' },
    ],
  ],
] satisfies readonly (readonly [string, string, readonly Case[]])[])
  test(`An import admits no person without access before: ${what}`, (t) => {
    const base = options.includes('upstreams =') ? usual.replace(/^upstreams.*$/m, '') : usual
    loadedFrom(t, `${base}${options}`, cases)
  })

test('With keycloak and keycloak-oidc, groups restrict as they do with oauth2-proxy', (t) => {
  const options = (provider: string, ...more: readonly string[]) =>
    `${usual.replace('"oidc"', `"${provider}"`)}email_domains = ["*"]\nkeycloak_groups = ["k"]\n${more.join('\n')}`
  const inGroup = (...groups: readonly string[]) => ({ ...jane, groups })

  loadedFrom(t, options('keycloak-oidc', 'allowed_roles = ["r"]'), [
    { as: inGroup('k'), get: '/', expect: 'forbidden' },
    { as: { ...jane, realm_access: { roles: ['r'] } }, get: '/', expect: 'pass' },
  ])
  loadedFrom(t, options('keycloak-oidc'), [
    { as: inGroup('k'), get: '/', expect: 'pass' },
    { as: inGroup('a'), get: '/', expect: 'forbidden' },
  ])
  const { yaml } = translated(options('keycloak', 'allowed_groups = ["a"]'))
  assert.match(yaml, /any_of:\n *- k\n/)
  assert.doesNotMatch(yaml, /- a\n/)
})

for (const provider of ['github', 'keycloak', 'login.gov'])
  test(`With ${provider}, oauth2-proxy ignores oidc_issuer_url, so the file denies all people until a decision`, (t) => {
    const toml = `${usual.replace('"oidc"', `"${provider}"`)}email_domains = ["*"]`
    loadedFrom(t, toml, [{ as: { ...jane, email_verified: true }, get: '/', expect: 'forbidden' }])
    assert.match(String(translated(toml).said('oidc_issuer_url')?.text), /ignores the issuer/)
  })

test('A provider without ID Tokens has a note with the page that describes it', () => {
  const toml = 'provider = "github"\nclient_id = "a"\ngithub_org = "example"'
  assert.match(String(translated(toml).said('provider')?.text), /docs\/providers\/oauth2\.md \(kind: oauth2\)/)
})

test('The parameters of login_url are named, because they are not sent', () => {
  const said = (url: string) => translated(`${usual}email_domains = ["*"]\nlogin_url = "${url}"`).said('login_url')
  assert.match(String(said('https://id.example.com/auth?hd=example.com&x=1')?.text), /\(hd, x\)/)
  assert.equal(said('https://id.example.com/auth')?.level, 'unneeded')
})

test('An import of the provider google admits only verified addresses, and always those of Google', (t) => {
  const toml = `${google}email_domains = ["*"]\noidc_email_claim = "upn"\ninsecure_oidc_allow_unverified_email = true`
  const { providers } = loadedFrom(t, `${toml}\noidc_issuer_url = "https://id.example.com"`, [
    { as: { ...jane, email_verified: true }, get: '/', expect: 'pass' },
    { as: { ...jane, upn: 'jane' }, get: '/', expect: 'forbidden' },
    { as: { ...jane, email_verified: false }, get: '/', expect: 'forbidden' },
  ])
  assert.equal(providers[0].issuer, 'https://accounts.google.com')
  loadedFrom(t, `${google}email_domains = ["example.com"]`, [
    {
      as: { sub: 'u1', hd: 'example.com', email: 'jane@alias.example', email_verified: true },
      get: '/',
      expect: 'forbidden',
    },
  ])
})

for (const missing of ['provider', 'client_id', 'client_secret', 'cookie_secret'])
  test(`A file without ${missing} denies all people, because flags may restrict access`, (t) => {
    const half = `${usual.replace(new RegExp(`^${missing} =.*\\n`, 'm'), '')}email_domains = ["*"]`

    loadedFrom(t, half, [{ as: { ...jane, hd: 'example.com', email_verified: true }, get: '/', expect: 'forbidden' }])
    assert.match(translated(half).yaml, new RegExp(`rules:[^]*# - ${missing}: this is not in the file, so flags`))
  })

test('Each decision about access is a comment at the rule that denies all people', () => {
  const { yaml } = translated(
    `${usual}email_domains = ["*"]\ngithub_org = "example"\napi_routes = ["^/api/"]\nallowed_new = ["a"]`,
  )

  const comment = yaml.slice(yaml.indexOf('rules:'))
  assert.match(
    comment,
    /^ *# Denies all people until this is decided:\n *# - github_org: .*\(example\).*\n *# - allowed_new: .*\n *# Write the decision as requirements, then remove this one\.\n *- not:$/m,
  )
})

test('An import says what prompt=none, hd and a CA beside those of Node.js change', () => {
  assert.match(String(translated(`${usual}prompt = "none"`).said('prompt')?.text), /only people who are signed in/)
  assert.match(String(translated(`${google}email_domains = ["example.com"]`).said('email_domains')?.text), /claim hd/)
  assert.match(String(translated(`${usual}provider_ca_files = ["ca"]`).said('provider_ca_files')?.text), /public CA/)
})

test('Without the profile URL, claims come from the ID Token', (t) => {
  const { providers } = loadedFrom(
    t,
    `${usual}email_domains = ["*"]\nskip_claims_from_profile_url = true\noidc_groups_claim = "fields.groups"`,
  )
  assert.deepEqual(providers[0].idTokenClaims.toSorted(), [
    'email',
    'email_verified',
    'fields',
    'preferred_username',
    'realm_access',
    'resource_access',
  ])
})

test('Roles of Keycloak use the claims of Keycloak', (t) => {
  const toml = usual.replace('"oidc"', '"keycloak-oidc"')
  loadedFrom(t, `${toml}email_domains = ["*"]\nallowed_roles = ["reader"]`, [
    { as: { ...jane, realm_access: { roles: ['reader'] } }, get: '/', expect: 'pass' },
    { as: { ...jane, realm_access: { roles: ['writer'] } }, get: '/', expect: 'forbidden' },
  ])
  loadedFrom(t, `${toml}email_domains = ["*"]\nallowed_roles = ["my app:reader"]`, [
    { as: { ...jane, resource_access: { 'my app': { roles: ['reader'] } } }, get: '/', expect: 'pass' },
    { as: { ...jane, realm_access: { roles: ['reader'] } }, get: '/', expect: 'forbidden' },
  ])
})

test('A pattern that is not a path opens no path and is reported', (t) => {
  const toml = `${usual}email_domains = ["*"]\nskip_auth_routes = ["^/(a|b)/", "!=^/admin"]\nskip_auth_preflight = true`

  loadedFrom(t, toml, [
    { get: '/a/x', expect: 'sign_in' },
    { get: '/other', expect: 'sign_in' },
  ])
  const lost = translated(toml).notes.filter(({ level }) => level === 'lost')
  assert.deepEqual(
    lost.map(({ text }) => text.split(': ')[0]),
    ['^/(a|b)/', '!=^/admin'],
  )
})

test('The redirect URI stays the same, or the new one is reported', (t) => {
  const same = loadedFrom(t, `${usual}email_domains = ["*"]`)
  assert.deepEqual([same.externalUrl.origin, same.reservedPrefix], ['https://orders.example.com', '/oauth2/'])
  assert.match(translated(usual).said('proxy_prefix')?.text ?? '', /^the redirect URI stays the same/)

  const other = translated(usual.replace('/oauth2/callback', '/auth/done'))
  assert.match(
    other.said('proxy_prefix')?.text ?? '',
    /redirect URI is https:\/\/orders\.example\.com\/oauth2\/callback: register it at the provider/,
  )

  const prefixed = loadedFrom(t, `${usual.replace('/oauth2/', '/auth/')}proxy_prefix = "/auth"\nemail_domains = ["*"]`)
  assert.equal(prefixed.reservedPrefix, '/auth/')
})

test('Upstreams, their identity headers and their settings are translated', (t) => {
  const toml = `${usual.replace(/^upstreams.*$/m, '')}email_domains = ["*"]
upstreams = ["http://app.internal:3000/", "http://app.internal:3001/files/", "http://127.0.0.1:3002/exact", "file:///srv/the%20www#/var/www/", "static://300", "http://user:hidden@other/"]
pass_host_header = false
upstream_timeout = "1m30s"
prefer_email_to_user = true
allowed_groups = ["staff"]
skip_auth_routes = ["^/files/public/"]`

  const { upstreams } = loadedFrom(t, toml)
  assert.deepEqual(
    upstreams.map(({ name, url, path, rules }) => [name, url.origin, path, rules.length]),
    [
      ['app', 'http://app.internal:3000', '/', 4],
      // One of them redirects /files to /files/.
      ['app-2', 'http://app.internal:3001', '/files/', 4],
      ['app-3', 'http://127.0.0.1:3002', '/exact/', 2],
    ],
  )
  for (const { hostHeader, responseTimeoutMs, headers } of upstreams) {
    assert.deepEqual([hostHeader, responseTimeoutMs], ['upstream', 90_000])
    assert.deepEqual(
      headers.map((header) => `${header.name}: ${claimsIn(header).join()}`),
      ['X-Forwarded-User: email', 'X-Forwarded-Preferred-Username: preferred_username', 'X-Forwarded-Groups: groups'],
    )
  }
  const lost = translated(toml).notes.filter(({ option, level }) => option === 'upstreams' && level === 'lost')
  assert.deepEqual(
    lost.map(({ text }) => text.split(': ')[0]),
    [
      'file:///srv/the%20www#/var/www/',
      'static://300',
      'http://…@other/',
      'http://…@other/ has the same path as another upstream',
    ],
  )
  assert.match(lost[0]?.text ?? '', /respond: \{ files: /)
  assert.match(lost[1]?.text ?? '', /respond: \{ status: 200 \}/)
})

test('Fixed responses and folders are rules with respond', (t) => {
  const folder = folderWith(t, { 'index.html': 'handbook' })
  const { upstreams } = loadedFrom(
    t,
    `${usual.replace(/^upstreams.*$/m, '')}email_domains = ["*"]
upstreams = ["static://202", "file://${folder}#/handbook/"]`,
  )
  assert.deepEqual(
    upstreams.map(({ path, respondsOnly, rules }) => [path, respondsOnly, rules.length]),
    [
      ['/', true, 1],
      ['/handbook/', true, 1],
    ],
  )
})

for (const [more, count] of [
  ['set_xauthrequest = true', 1],
  ['set_xauthrequest = false', 0],
  ['', 0],
] as const)
  test(`A response for a proxy that asks has a note about forward_auth: ${more}`, () => {
    const { notes } = translated(`${usual.replace(/^upstreams.*$/m, 'upstreams = ["static://202"]')}${more}\n`)
    const found = notes.filter(({ option, level, text }) => option === 'upstreams' && level === 'decide' && text)
    assert.equal(found.length, count)
    assert.match(found[0]?.text ?? 'forward_auth: true', /forward_auth: true/)
  })

for (const toml of ['upstreams = ["static://202"]', 'upstreams = ["http://127.0.0.1:8080/"]\nhttp_address = ":4180"'])
  test(`What import writes starts: ${toml}`, (t) => {
    loadedFrom(t, `${usual.replace(/^upstreams.*$/m, '')}email_domains = ["*"]\n${toml}`)
    const { notes, yaml } = translated(`${usual.replace(/^upstreams.*$/m, '')}email_domains = ["*"]\n${toml}`)
    assert.ok(!notes.some(({ text }) => text.includes('this file has an error')))
    assert.doesNotMatch(yaml, /get: ""/)
  })

test('The password of an upstream is in no note', () => {
  const toml = `${usual.replace(/^upstreams.*$/m, '')}email_domains = ["*"]
upstreams = ["http://user:p@ss-hidden@one/", "http://user:pa/ss-hidden@two/", "unix://user:@hidden@three/"]`

  assert.doesNotMatch(JSON.stringify(translated(toml)), /hidden/)
})

test('Without pass_basic_auth and pass_user_headers, no identity header is sent', (t) => {
  const [upstream] = loadedFrom(
    t,
    `${usual}email_domains = ["*"]\npass_basic_auth = false\npass_user_headers = false`,
  ).upstreams
  assert.deepEqual(upstream?.headers, [])
})

test('The Authorization that the application gets is translated, without the password', (t) => {
  const withHeaders = (options: string) =>
    parse(translated(`${usual}email_domains = ["*"]\n${options}`).yaml) as {
      readonly upstreams: Record<string, { readonly headers?: Record<string, unknown> }>
    }
  const authorization = (options: string) =>
    Object.values(withHeaders(options).upstreams).map(({ headers }) => headers?.['Authorization'])[0]
  const basic = (user: string) => ({ basic: { user, password: { env: 'BASIC_AUTH_PASSWORD' } } })

  assert.equal(authorization(''), undefined)
  assert.deepEqual(authorization('pass_authorization_header = true'), { bearer: 'id_token' })
  assert.deepEqual(authorization('basic_auth_password = "hidden"'), basic('sub'))
  assert.deepEqual(authorization('basic_auth_password = "hidden"\nprefer_email_to_user = true'), basic('email'))
  assert.equal(authorization('basic_auth_password = "hidden"\npass_basic_auth = false'), undefined)
  const none = 'pass_basic_auth = false\npass_user_headers = false'
  assert.deepEqual(authorization(`${none}\npass_authorization_header = true`), { bearer: 'id_token' })

  const both = translated(`${usual}basic_auth_password = "hidden"\npass_authorization_header = true`)
  assert.equal(both.said('basic_auth_password')?.level, 'lost')
  assert.doesNotMatch(JSON.stringify([both, translated(`${usual}basic_auth_password = "hidden"`)]), /hidden/)
  assert.match(String(translated('pass_access_token = true').said('pass_access_token')?.text), /bearer: access_token/)
  const [upstream] = loadedFrom(t, `${usual}email_domains = ["*"]\npass_authorization_header = true`).upstreams
  assert.ok(upstream?.headers.some(({ source }) => source.kind === 'bearer'))
})

test('Options for programs name the setting that replaces them', () => {
  const { said } = translated(`${usual}skip_jwt_bearer_tokens = true
extra_jwt_issuers = "https://other.example=api"
htpasswd_file = "/etc/htpasswd"
trusted_ips = ["10.0.0.0/8"]`)

  assert.match(String(said('skip_jwt_bearer_tokens')?.text), /access_tokens/)
  assert.match(String(said('extra_jwt_issuers')?.text), /providers/)
  assert.match(String(said('htpasswd_file')?.text), /service_accounts/)
  assert.match(String(said('trusted_ips')?.text), /networks/)
})

test('Listen address, TLS, trusted proxies and metrics are translated', (t) => {
  const { listen, trustedProxies, admin } = loadedFrom(
    t,
    `${usual}email_domains = ["*"]\nhttp_address = "http://:8080"\nreverse_proxy = true\ntrusted_proxy_ips = ["10.1.2.3/8"]\nmetrics_address = "127.0.0.1:9100"`,
  )
  assert.deepEqual([listen.host, listen.port, trustedProxies.length, admin?.port], ['0.0.0.0', 8080, 1, 9100])

  const withoutProxies = translated(`${usual}reverse_proxy = true\nhttp_address = "unix:///run/x.sock"`)
  assert.equal(withoutProxies.said('reverse_proxy')?.level, 'decide')
  assert.equal(withoutProxies.said('http_address')?.level, 'lost')

  const tls = translated(`${usual}tls_cert_file = "tls.crt"\ntls_key_file = "tls.key"\nhttps_address = "0.0.0.0:8443"`)
  assert.deepEqual((parse(tls.yaml) as { listen: object }).listen, {
    address: '0.0.0.0:8443',
    tls: { cert_file: 'tls.crt', key_file: 'tls.key' },
  })
})

for (const [what, toml, kind] of [
  ['one server', 'redis_connection_url = "redis://user:hidden@redis:6379/2"', 'redis'],
  [
    'Sentinels',
    'redis_use_sentinel = true\nredis_sentinel_master_name = "main"\nredis_sentinel_connection_urls = ["redis://a:26379", "redis://:hidden@b:26379"]\nredis_password = "hidden"\nredis_sentinel_password = "hidden"',
    'redis_sentinel',
  ],
  [
    'a Cluster',
    'redis_use_cluster = true\nredis_cluster_connection_urls = ["rediss://a:6379", "rediss://b:6379"]\nredis_password = "hidden"',
    'redis_cluster',
  ],
  ['an invalid address', 'redis_connection_url = "unix:///hidden"', 'redis'],
] as const)
  test(`Sessions in Redis are translated: ${what}`, (t) => {
    const all = `${usual}email_domains = ["*"]\nsession_store_type = "redis"\n${toml}`

    assert.equal(loadedFrom(t, all).session.store.kind, kind)
    assert.ok(!JSON.stringify(translated(all)).includes('hidden'))
  })

test('Timeouts and the cookie are translated', (t) => {
  const { session } = loadedFrom(
    t,
    `${usual}email_domains = ["*"]\ncookie_expire = "20m0s"\ncookie_name = "__Host-_proxy"\ncookie_samesite = "strict"`,
  )
  assert.deepEqual([session.absoluteTimeoutMs, session.idleTimeoutMs], [1_200_000, 1_200_000])
  assert.deepEqual([session.cookie.name, session.cookie.sameSite], ['__Host-_proxy', 'strict'])

  for (const never of ['0', '', '2 weeks', '99999h'])
    assert.equal(
      loadedFrom(t, `${usual}email_domains = ["*"]\ncookie_expire = "${never}"`).session.absoluteTimeoutMs,
      43_200_000,
    )
})

test('The domain of the cookie is translated', (t) => {
  const options = (domains: string) =>
    `${usual}email_domains = ["*"]\ncookie_domains = [${domains}]\nwhitelist_domains = [".example.com"]`
  const [own, other] = [options('"example.org", ".example.com"'), options('"example.org"')]

  assert.equal(loadedFrom(t, own).session.cookie.domain, 'example.com')
  assert.equal(translated(own).said('cookie_domains')?.level, 'changed')
  assert.match(translated(own).said('whitelist_domains')?.text ?? '', /only to hosts that an external_url names/)
  assert.equal(loadedFrom(t, other).session.cookie.domain, undefined)
  assert.equal(translated(other).said('cookie_domains')?.level, 'lost')
})

test('An empty file becomes a valid file that denies all people', (t) => {
  loadedFrom(t, '', [{ as: { ...jane, hd: 'example.com' }, get: '/', expect: 'forbidden' }])
  const decide = translated('').notes.filter(({ level }) => level === 'decide')
  assert.deepEqual(decide.map(({ option }) => option).toSorted(), [
    'client_id',
    'email_domains',
    'provider, client_id, client_secret, cookie_secret',
    'redirect_url',
    'upstreams',
  ])
})

test('With an unknown option, only the open paths are accessible', (t) => {
  const toml = `${usual}email_domains = ["*"]\nskip_auth_routes = ["^/open$"]\napi_routes = ["^/api/"]\nallowed_something_new = ["a"]`

  loadedFrom(t, toml, [
    { as: jane, get: '/', expect: 'forbidden' },
    { as: jane, get: '/api/x', expect: 'forbidden' },
    { get: '/open', expect: 'pass' },
  ])
  assert.equal(translated(toml).said('allowed_something_new')?.level, 'decide')
  // It may have been on by default.
  loadedFrom(t, toml.replace('= ["a"]', '= false'), [{ as: jane, get: '/', expect: 'forbidden' }])
  loadedFrom(t, toml.replace('= ["a"]', '= []'), [{ as: jane, get: '/', expect: 'pass' }])
})

test('The path above an open path is not open, and an upstream for one path serves no other', (t) => {
  const open = `${usual}email_domains = ["*"]\nskip_auth_routes = ["^/files/"]`
  loadedFrom(t, open, [
    { get: '/files', expect: 'sign_in' },
    { get: '/files/', expect: 'pass' },
    { get: '/files/a', expect: 'pass' },
    { get: '/files/a/b/', expect: 'pass' },
  ])
  loadedFrom(t, open.replace(':3000/', ':3000/files/public/'), [{ get: '/files/public/x', expect: 'pass' }])

  const exact = `${usual.replace(':3000/', ':3000/status')}email_domains = ["*"]`
  loadedFrom(t, exact, [
    { get: '/status', expect: 'sign_in' },
    { as: jane, get: '/status', expect: 'pass' },
    { as: jane, get: '/status/admin', expect: 'forbidden' },
  ])
  loadedFrom(t, `${exact}\nskip_auth_routes = ["^/status"]`, [
    { get: '/status', expect: 'pass' },
    { as: jane, get: '/status/admin', expect: 'forbidden' },
  ])
})

test('A minimum of TLS 1.3 is not kept, and a note says so', () => {
  const { said } = translated(`${usual}tls_min_version = "TLS1.3"\n`)
  assert.equal(said('tls_min_version')?.level, 'lost')
})

test('An unsupported option is reported only if it was on', () => {
  assert.equal(translated('pass_access_token = false').said('pass_access_token')?.level, 'unneeded')
  assert.equal(translated('pass_access_token = true').said('pass_access_token')?.level, 'lost')
})

// The reason of a note is the regression "a note of import prints an object".
for (const [what, options, scopes, reason] of [
  ['nothing at all', '', undefined, undefined],
  ['groups', 'allowed_groups = ["staff"]', ['openid', 'profile', 'email', 'offline_access', 'groups'], undefined],
  ['scopes', 'scope = "openid email offline_access"', ['openid', 'email', 'offline_access'], undefined],
  ['groups of Keycloak', 'allowed_groups = ["staff"]\n#keycloak', ['openid', 'profile', 'email', 'groups'], undefined],
  [
    'scopes of Keycloak',
    'scope = "email offline_access"\n#keycloak',
    ['openid', 'email'],
    /Keycloak replaces the single sign-on session/,
  ],
  ['scopes of Google', 'scope = "openid offline_access"\n#google', ['openid'], /Google rejects offline_access/],
] as const)
  test(`offline_access is translated only where it does no harm: ${what}`, () => {
    const isKeycloak = options.includes('#keycloak')
    const issuer = options.includes('#google') ? 'https://accounts.google.com' : 'https://id.example.com'
    const toml = `provider = "${isKeycloak ? 'keycloak-oidc' : 'oidc'}"
oidc_issuer_url = "${issuer}${isKeycloak ? '/realms/main' : ''}"
client_id = "orders"
redirect_url = "https://orders.example.com/oauth2/callback"
email_domains = ["*"]
${options}`

    const { yaml, notes } = translated(toml)

    const { provider } = parse(yaml) as { readonly provider: { readonly scopes?: readonly string[] } }
    assert.deepEqual(provider.scopes, scopes)
    const note = notes.find(({ option, text }) => option === 'scope' && text.includes('offline_access'))
    if (reason) assert.match(note?.text ?? '', reason)
    else assert.equal(note, undefined)
    for (const { text } of notes) assert.doesNotMatch(text, /\[object|undefined/)
  })
