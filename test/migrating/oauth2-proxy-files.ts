import type { Choices, Generated } from './generated.ts'

const paths = ['/', '/admin', '/a', '/a/b', '/files', '/files/open', '/public', '/api/x', '/exact', '/PUBLIC']
const fields = [
  ...['X-Forwarded-User', 'X-Forwarded-Email', 'X-Forwarded-Groups', 'X-Forwarded-Preferred-Username'],
  ...['X-Forwarded-Access-Token', 'X-Auth-Request-User', 'X_Forwarded_User'],
]

/** A file of oauth2-proxy. `settings` are those about the provider. */
export function oauth2ProxyFile(settings: string, choices: Choices): Generated {
  const chosen = kinds.filter(() => choices.is(35)).map((forms) => choices.one(forms))
  const theirs = [
    settings.replaceAll(/^upstreams .*\n/gm, ''),
    choices.one(domains),
    choices.one(upstreams),
    ...chosen,
    '',
  ].join('\n')
  return { theirs, paths, signInAt: '/needs-a-sign-in', fields }
}

const domains = [
  ...['email_domains = ["*"]', 'email_domains = ["*"]', 'email_domains = ["example.com"]'],
  ...['email_domains = [".example.com"]', 'email_domains = ["*.example.com", "other.example"]'],
  ...['email_domains = "example.com, other.example"', 'email_domains = ["EXAMPLE.com"]'],
]

const upstreams = [
  ...[
    'upstreams = ["http://127.0.0.1:3000/"]',
    'upstreams = ["http://127.0.0.1:3000/", "http://127.0.0.1:3000/files/"]',
  ],
  ...['upstreams = ["http://127.0.0.1:3000/", "http://127.0.0.1:3000/exact"]', 'upstreams = ["http://127.0.0.1:3000"]'],
  ...[
    'upstreams = ["http://127.0.0.1:3000/a/", "static://202"]',
    'upstreams = ["http://127.0.0.1:3000/", "file:///usr/share/doc/#/files/"]',
  ],
]

const patterns = [
  ...['^/public', '^/public/', '^/public$', '^/public(/.*)?$', '^/public/.*$', '/public', '^/files/open', '^/a'],
  ...[
    '^/(a|files)/',
    '^/a/b$',
    '^/$',
    '^/',
    '\\\\.css$',
    '^/a\\\\.b',
    '^/public|/open$',
    '^/files/[^/]+$',
    '(?i)^/public',
  ],
]

/** Kinds of options, each with its forms. */
const kinds: readonly (readonly string[])[] = [
  ['allowed_groups = ["admins"]', 'allowed_groups = ["admins", "ops"]', 'allowed_groups = "staff, ops"'],
  patterns.flatMap((pattern) =>
    ['', 'GET=', 'POST=', 'POST!='].map((method) => `skip_auth_routes = ["${method}${pattern}"]`),
  ),
  patterns.map((pattern) => `skip_auth_regex = ["${pattern}"]`),
  patterns.map((pattern) => `api_routes = ["${pattern}"]`),
  ['skip_auth_preflight = true'],
  ['insecure_oidc_allow_unverified_email = true'],
  ['oidc_email_claim = "upn"', 'oidc_email_claim = "preferred_username"', 'user_id_claim = "sub"'],
  ['oidc_groups_claim = "roles"', 'oidc_groups_claim = "realm.roles"'],
  [
    'pass_user_headers = false',
    'pass_basic_auth = false',
    'prefer_email_to_user = true',
    'pass_authorization_header = true',
  ],
  [
    'pass_access_token = true',
    'set_xauthrequest = true',
    'skip_auth_strip_headers = false',
    'pass_host_header = false',
  ],
  ['skip_jwt_bearer_tokens = true', 'cookie_samesite = "lax"', 'proxy_prefix = "/oauth2"'],
]
