import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stringify } from 'yaml'
import { readOptionsOf } from '../../packages/import/oauth2-proxy/oauth2-proxy-sources.ts'
import { translate } from '../../packages/import/oauth2-proxy/oauth2-proxy.ts'

const optionsOf = (text: string, args?: readonly string[], service?: string) =>
  Object.fromEntries(readOptionsOf([{ name: 'given', text }], args, service))

const environment = `# of production
OAUTH2_PROXY_CLIENT_ID=orders
export OAUTH2_PROXY_EMAIL_DOMAINS="example.com,example.org"
OAUTH2_PROXY_COOKIE_SECURE='false' 
PATH=/usr/bin
`

test('Variables are options, and those of other programs are left out', () => {
  assert.deepEqual(optionsOf(environment), {
    client_id: 'orders',
    email_domains: 'example.com,example.org',
    cookie_secure: 'false',
  })
})

test('Flags are options, and a repeated flag is a list under the name of the file', () => {
  const args = ['--client-id=orders', '--upstream', 'http://a', '--upstream=http://b,http://c', '--pass-access-token']

  assert.deepEqual(Object.fromEntries(readOptionsOf([], args)), {
    client_id: 'orders',
    upstreams: ['http://a', 'http://b', 'http://c'],
    pass_access_token: 'true',
  })
})

test('A command over several lines is read as a shell reads it', () => {
  const command = 'oauth2-proxy \\\n  --client-id="my orders" \\\n  --upstream=http://a --set-xauthrequest'

  assert.deepEqual(optionsOf(command), { client_id: 'my orders', upstreams: 'http://a', set_xauthrequest: 'true' })
})

test('Flags replace variables, and variables replace the file, in any order', () => {
  const toml = 'client_id = "file"\nprovider = "oidc"\ncookie_name = "file"\n'
  const texts = [
    { name: '.env', text: 'OAUTH2_PROXY_CLIENT_ID=variable\nOAUTH2_PROXY_COOKIE_NAME=variable' },
    { name: 'oauth2-proxy.cfg', text: toml },
  ]

  assert.deepEqual(Object.fromEntries(readOptionsOf(texts, ['--cookie-name=flag'])), {
    client_id: 'variable',
    provider: 'oidc',
    cookie_name: 'flag',
  })
})

const compose = `
x-common: &common
  OAUTH2_PROXY_PROVIDER: oidc
services:
  app: { image: 'example/app' }
  gate:
    image: quay.io/oauth2-proxy/oauth2-proxy:v7.15.3
    command: --upstream=http://app:3000 --skip-provider-button=true
    environment:
      <<: *common
      OAUTH2_PROXY_CLIENT_ID: orders
      OAUTH2_PROXY_REVERSE_PROXY: true
      OAUTH2_PROXY_CLIENT_SECRET: \${SECRET}
`

test('A Compose file has variables and a command, with anchors', () => {
  assert.deepEqual(optionsOf(compose), {
    provider: 'oidc',
    client_id: 'orders',
    reverse_proxy: 'true',
    client_secret: '${SECRET}',
    upstreams: 'http://app:3000',
    skip_provider_button: 'true',
  })
})

test('Of several services with oauth2-proxy, one has to be named', () => {
  const two = `services:
  staff: { image: oauth2-proxy, environment: ['OAUTH2_PROXY_CLIENT_ID=staff'] }
  guests: { image: oauth2-proxy, environment: ['OAUTH2_PROXY_CLIENT_ID=guests'] }
`

  assert.throws(
    () => optionsOf(two),
    /given: several services run oauth2-proxy: name one with --service: staff, guests/,
  )
  assert.deepEqual(optionsOf(two, [], 'guests'), { client_id: 'guests' })
  assert.throws(() => optionsOf(two, [], 'others'), /no service is called others: there are staff, guests/)
})

test('A manifest of Kubernetes has the container, and a value from a secret is unknown', () => {
  const manifest = `apiVersion: apps/v1
kind: Deployment
spec:
  template:
    spec:
      containers:
        - { name: app, image: example/app }
        - name: oauth2-proxy
          image: quay.io/oauth2-proxy/oauth2-proxy
          args: ['--upstream=http://127.0.0.1:3000', --email-domain=example.com]
          env:
            - { name: OAUTH2_PROXY_CLIENT_ID, value: orders }
            - { name: OAUTH2_PROXY_ALLOWED_GROUPS, valueFrom: { secretKeyRef: { name: a, key: b } } }
`

  assert.deepEqual(optionsOf(manifest), {
    client_id: 'orders',
    allowed_groups: '${OAUTH2_PROXY_ALLOWED_GROUPS}',
    upstreams: 'http://127.0.0.1:3000',
    email_domains: 'example.com',
  })
})

test('Values of the Helm chart are the file, the credentials, and the flags together', () => {
  const values = `config:
  clientID: orders
  configFile: |-
    email_domains = [ "example.com" ]
    upstreams = [ "http://app" ]
extraArgs:
  provider: oidc
  skip-auth-route: [GET=^/public/, GET=^/static/]
extraEnv:
  - { name: OAUTH2_PROXY_COOKIE_NAME, value: gate }
`

  assert.deepEqual(optionsOf(values), {
    email_domains: ['example.com'],
    upstreams: ['http://app'],
    client_id: 'orders',
    cookie_name: 'gate',
    provider: 'oidc',
    skip_auth_routes: ['GET=^/public/', 'GET=^/static/'],
  })
  assert.deepEqual(optionsOf('config: { clientID: orders }')['email_domains'], ['*'], 'as the chart writes it')
})

test('In a Compose file, $$ is a $', () => {
  const text =
    'services: { a: { image: oauth2-proxy, command: --skip-auth-route=^/a$$, environment: { OAUTH2_PROXY_PROMPT: a$$b } } }'
  assert.deepEqual(optionsOf(text), { skip_auth_routes: '^/a$', prompt: 'a$b' })
})

const chart = { config: { clientID: 'orders', configFile: 'email_domains = ["example.com"]' } }
for (const [kind, spec] of [
  ['HelmRelease', { chart: { spec: { chart: 'oauth2-proxy' } }, values: chart }],
  ['Application', { source: { chart: 'oauth2-proxy', helm: { valuesObject: chart } } }],
  [
    'Application',
    { sources: [{ chart: 'other' }, { chart: 'oauth2-proxy', helm: { values: JSON.stringify(chart) } }] },
  ],
] as const)
  test(`The values of the chart in ${kind} are read: ${Object.keys(spec).join(', ')}`, () => {
    assert.deepEqual(optionsOf(stringify({ kind, spec })), { client_id: 'orders', email_domains: ['example.com'] })
  })

test('Redis in values of the chart is that of the sessions', () => {
  const optionsWith = (redis: object) =>
    optionsOf(stringify({ config: { clientID: 'a' }, sessionStorage: { type: 'redis', redis } }))
  const one = optionsWith({
    clientType: 'standalone',
    existingSecret: 'a',
    standalone: { connectionUrl: 'redis://r:6379' },
  })
  assert.equal(one['session_store_type'], 'redis')
  assert.equal(one['redis_connection_url'], 'redis://r:6379')
  assert.equal(one['redis_password'], '${redis_password}')
  const several = optionsWith({
    clientType: 'sentinel',
    sentinel: { masterName: 'm', connectionUrls: ['redis://s:26379'] },
  })
  assert.deepEqual(
    [several['redis_use_sentinel'], several['redis_sentinel_master_name'], several['redis_sentinel_connection_urls']],
    ['true', 'm', ['redis://s:26379']],
  )
  const nodes = optionsWith({ clientType: 'cluster', cluster: { connectionUrls: ['redis://n:6379'] } })
  assert.deepEqual(nodes['redis_cluster_connection_urls'], ['redis://n:6379'])
})

for (const [what, values] of [
  ['the file of addresses', { authenticatedEmailsFile: { enabled: true, restricted_access: 'a@example.com' } }],
  ['groups of Google', { config: { clientID: 'a', google: { groups: ['staff@example.com'] } } }],
  ['values that import does not know', { unheardOf: { enabled: true } }],
  ['another file', { config: { clientID: 'a', existingConfig: 'elsewhere' } }],
] as const)
  test(`Values of the chart that may restrict access deny all people: ${what}`, () => {
    const text = stringify({
      config: { clientID: 'a', clientSecret: 'b', cookieSecret: 'c' },
      extraArgs: {},
      ...values,
    })
    const { yaml } = translate(readOptionsOf([{ name: 'values.yaml', text }]), 'https://a.example.com')
    assert.match(yaml, /Denies all people until this is decided/)
  })

test('Credentials in a Secret of Kubernetes deny nobody', () => {
  const text = stringify({
    config: {
      existingSecret: 'a',
      configFile:
        'email_domains = ["*"]\nprovider = "oidc"\noidc_issuer_url = "https://id.example.com"\nupstreams = ["http://a"]',
    },
    resources: {},
  })
  const { yaml, notes } = translate(readOptionsOf([{ name: 'values.yaml', text }]), 'https://a.example.com')
  assert.doesNotMatch(yaml, /Denies all people/)
  assert.deepEqual(
    notes.filter(({ level }) => level === 'decide').map(({ option }) => option),
    ['client_id'],
  )
})

for (const flag of ['allowed-role', 'keycloak-group', 'google-group', 'gitlab-project', 'github-user'])
  test(`The flag --${flag} is the option with an s`, () => {
    assert.deepEqual(optionsOf(`--${flag}=a`, ['--' + flag + '=b'])[`${flag.replaceAll('-', '_')}s`], 'b')
  })

for (const [what, text, message] of [
  ['a line that is no variable', 'OAUTH2_PROXY_CLIENT_ID=a\nsecret of somebody', /entry 2 is no environment variable/],
  ['invalid YAML', 'services:\n  a: [secret of somebody', /invalid YAML/],
  ['other YAML', 'name: secret of a person', /neither a Compose file/],
  ['an alpha configuration', 'upstreamConfig: { upstreams: [] }', /alpha configuration/],
  ['values with alphaConfig', 'alphaConfig: { enabled: true }', /alphaConfig is on/],
  [
    'a file of variables elsewhere',
    'services: { a: { image: oauth2-proxy, env_file: .env } }',
    /env_file names \.env, which is not here: give import this file too/,
  ],
  ['a manifest without containers', 'kind: Service\nspec: { ports: [] }', /there are no services or containers$/],
  [
    'values elsewhere',
    'kind: HelmRelease\nspec: { chart: oauth2-proxy, valuesFrom: [{ name: a }] }',
    /valuesFrom names values/,
  ],
  ['variables elsewhere', 'config: { clientID: a }\nenvFrom: [{ secretRef: { name: a } }]', /envFrom names variables/],
  ['no oauth2-proxy', 'services: { a: { image: nginx } }', /no service has an image of oauth2-proxy: there are a/],
  ['an alias bomb', `services: &a { b: &b [${'*c, '.repeat(3)}1] }`, /invalid YAML/],
] as const)
  test(`Input with ${what} is an error that quotes nothing`, () => {
    assert.throws(
      () => optionsOf(text),
      (error: Error) => error instanceof SyntaxError && message.test(error.message) && !/somebody/.test(error.message),
    )
  })

const withFiles = `services:
  gate:
    image: oauth2-proxy
    env_file: [ common.env, { path: ./gate.env }, { path: absent.env, required: false } ]
    environment: { OAUTH2_PROXY_CLIENT_ID: from-compose }
`
const files = [
  { name: 'compose.yaml', text: withFiles },
  {
    name: 'deploy/common.env',
    text: 'OAUTH2_PROXY_CLIENT_ID=common\nOAUTH2_PROXY_PROVIDER=common\nOAUTH2_PROXY_SCOPE=common',
  },
  { name: 'gate.env', text: 'OAUTH2_PROXY_PROVIDER=gate\nOAUTH2_PROXY_CLIENT_ID=gate' },
]

test('A later env_file replaces an earlier one, and environment replaces both, as in Compose', () => {
  const expected = { client_id: 'from-compose', provider: 'gate', scope: 'common' }
  for (const given of [files, files.toReversed()]) assert.deepEqual(Object.fromEntries(readOptionsOf(given)), expected)
  const beside = (path: string) => files.find(({ name }) => name.endsWith(path.replace('./', '')))?.text
  assert.deepEqual(Object.fromEntries(readOptionsOf([{ name: 'compose.yaml', text: withFiles, beside }])), expected)
})

test('A variable without a value is that of another program, and unknown', () => {
  assert.deepEqual(
    optionsOf(
      'services: { a: { image: oauth2-proxy, environment: [OAUTH2_PROXY_ALLOWED_GROUPS, OAUTH2_PROXY_SCOPE=] } }',
    ),
    { allowed_groups: '${OAUTH2_PROXY_ALLOWED_GROUPS}', scope: '' },
  )
})
