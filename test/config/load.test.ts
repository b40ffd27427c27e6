// Own process: it works in the folder of the golden cases, so that diagnostics name short paths.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { chdir } from 'node:process'
import { test, type TestContext } from 'node:test'
import { type Diagnostic, formatDiagnostic } from '../../src/config/document/diagnostics.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { GatewayConfig } from '../../src/config/model/gateway.ts'
import { parseClaimPath } from '../../src/core/claims.ts'
import { parseNamePattern, parsePathPattern } from '../../src/core/patterns.ts'
import { formatDiagnostics } from '../support/diagnostics.ts'
import { plainPages } from '../support/pages.ts'
import { searchFor } from '../support/searches.ts'
import { environment } from './environment.ts'

chdir(new URL('cases/', import.meta.url).pathname)

function config(file: string): GatewayConfig {
  const loaded = loadConfig(file, environment)
  if (!loaded.ok) assert.fail(formatDiagnostics(loaded.diagnostics))
  return loaded.config
}

function complaints(file: string): readonly Diagnostic[] {
  const loaded = loadConfig(file, environment)
  assert.ok(!loaded.ok)
  return loaded.diagnostics
}

function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'gatehouse-config-'))
  t.after(() => rmSync(path, { recursive: true }))
  return path
}

function written(t: TestContext, content: string | Uint8Array): string {
  const file = join(folder(t), 'gateway.yaml')
  writeFileSync(file, content)
  return file
}

const smallest = readFileSync('smallest.yaml', 'utf8')

/** The settings of a provider that neither signs UserInfo nor encrypts. */
const unencrypted = {
  userinfo_signed_response_alg: undefined,
  authorization_encrypted_response_alg: undefined,
  authorization_encrypted_response_enc: undefined,
  userinfo_encrypted_response_alg: undefined,
  userinfo_encrypted_response_enc: undefined,
  id_token_encrypted_response_alg: undefined,
  id_token_encrypted_response_enc: undefined,
  decryptionKey: undefined,
}

test('The smallest configuration has derived defaults', () => {
  const { session, ...others } = config('smallest.yaml')

  const externalUrl = new URL('https://orders.example.com')
  const header = { join: ',', encode: 'utf8', maxBytes: 4096, tooLong: 'omit' as const, required: false }
  // What is used as it is written has the defaults of the schema.
  assert.partialDeepStrictEqual(others, {
    file: 'smallest.yaml',
    listen: { host: '0.0.0.0', port: 8080, tls: undefined, plainPath: true, http2: true, h2c: false },
    admin: undefined,
    extAuthz: undefined,
    externalUrl,
    reservedPrefix: '/.gatehouse/',
    clientCertHeader: false,
    trustedProxies: [],
    workers: 1,
    providers: [
      {
        name: 'provider',
        setting: 'provider',
        title: '',
        prefix: '/.gatehouse/',
        cookieName: '__Host-gatehouse',
        renamedClaims: {},
        issuer: 'https://id.example.com',
        client_id: 'orders',
        client_secret: 'a client secret of the tests',
        token_endpoint_auth_method: 'client_secret_basic',
        response_mode: 'query',
        frontchannelLogout: false,
        globalTokenRevocation: undefined,
        signals: undefined,
        idTokenClaims: [],
        oauth2: undefined,
        claimSources: [],
        claimsFrom: [],
        userinfoClaims: ['email'],
        scopes: undefined,
        authorizationParams: {},
        endSessionParams: {},
        endSessionForm: 'when_long',
        longestEndSessionUrlBytes: 4096,
        claims: {},
        id_token_signed_response_alg: undefined,
        ...unencrypted,
        clockToleranceMs: 30_000,
        timeoutMs: 5_000,
        ca: undefined,
        metadata: undefined,
        clientKey: undefined,
        clientAssertionAudience: 'issuer',
        clientCertificate: undefined,
        pushedAuthorizationRequests: 'when_required',
        signedRequests: false,
        dpop: false,
        resource: [],
        linkParams: [],
        profile: undefined,
        egressProxy: undefined,
      },
    ],
    upstreams: [
      {
        name: 'orders',
        place: { file: 'smallest.yaml', line: 8, column: 3 },
        hosts: [],
        providers: ['provider'],
        accessTokens: undefined,
        serviceAccounts: undefined,
        tokenExchange: undefined,
        path: '/',
        url: new URL('http://127.0.0.1:3000'),
        externalUrl,
        hostHeader: 'client',
        originHeader: 'client',
        headers: [
          { name: 'X-Remote-User', source: { kind: 'claim', path: ['sub'] }, ...header },
          { name: 'X-Email', source: { kind: 'claim', path: ['email'] }, ...header },
        ],
        signedIdentity: undefined,
        rules: [],
        trustedOrigins: [],
        cors: undefined,
        cache: 'private',
        sessionCookies: [],
        forwardAuth: false,
        clientCertHeader: false,
        respondsOnly: false,
        needsDeviceBinding: false,
        stripPath: false,
        alsoKnownAs: [],
        authorizeWith: undefined,
        setCookie: { domain: undefined, path: undefined, secure: false, sameSite: undefined },
        responseHeaders: { set: {}, remove: [], defaults: [] },
        logout: { paths: [], passFirst: false, cookies: [], call: undefined },
        upgrade: ['websocket'],
        connectTimeoutMs: 5_000,
        responseTimeoutMs: 60_000,
        rewriteContent: false,
        sessionNotice: false,
        compress: false,
        idleTimeoutMs: 300_000,
        keepAliveMs: 1_500,
        maxConnections: 128,
        maxStreams: 8192,
        maxStreamsPerClient: 1024,
        targets: [{ url: new URL('http://127.0.0.1:3000'), socketPath: undefined, weight: 1, backup: false }],
        resolve: undefined,
        healthCheck: undefined,
        balance: 'round_robin',
        eject: { failures: 3, statuses: [], forMs: 10_000, atMostMs: 300_000 },
        slowStartMs: 0,
        retryBudget: 20,
        connectionsPerTarget: undefined,
        tls: { ca: undefined, serverName: undefined, clientCertificate: undefined, pinnedKeys: [] },
        proxyProtocol: 'off',
        removedFields: [],
        protocol: 'http1',
        streamsPerConnection: 100,
        tests: [],
      },
    ],
    pages: plainPages,
    limits: {
      headerSizeBytes: 32_768,
      headerCount: 100,
      headersTimeoutMs: 30_000,
      bodyIdleTimeoutMs: 60_000,
      bodyRateBytesPerSecond: 128,
      connections: 10_000,
      areConnectionsSet: false,
      perClient: {
        connections: 2_000,
        signIns: { count: 3_000, perMs: 60_000 },
        callbacks: { count: 1_200, perMs: 60_000 },
        callbacksAtOnce: 500,
        refusedLogoutTokens: { count: 600, perMs: 60_000 },
      },
    },
    keptRequests: { maxSizeBytes: 1024 * 1024, keepForMs: 900_000 },
    shutdown: { drainTimeoutMs: 15_000 },
    log: { level: 'info', access: true, format: 'auto' },
    signingKeys: { rotateEveryMs: 7 * 86_400_000 },
    tracing: undefined,
  })
  const { keys, ...times } = session
  assert.deepEqual(
    keys.map((key) => key.length),
    [32],
  )
  assert.partialDeepStrictEqual(times, {
    isKeyGenerated: true,
    store: { kind: 'memory', maxSessions: 100_000 },
    idleTimeoutMs: 1_800_000,
    absoluteTimeoutMs: 43_200_000,
    refreshBeforeMs: 60_000,
    pollUserinfoMs: undefined,
    storeOutageGraceMs: 0,
    maxPerPerson: undefined,
    page: false,
    cookie: { name: '__Host-gatehouse', secure: true, sameSite: 'lax' },
    embeddedIn: [],
    deviceBinding: {
      isOn: true,
      isRequired: false,
      cookieLifetimeMs: 300_000,
      registrationGraceMs: 60_000,
      onMisuse: 'refuse',
    },
  })
})

test('With the memory store and without keys, each start generates a key', () => {
  const [one, other] = [config('smallest.yaml'), config('smallest.yaml')]

  assert.notDeepEqual(one.session.keys, other.session.keys)
})

test('Every setting of a full configuration is read', () => {
  const full = config('full.yaml')

  const ca = readFileSync('tls/gateway.crt', 'latin1')
  const fields = 'https://id.example.com/claims/fields'
  assert.partialDeepStrictEqual(full.listen, {
    host: '::',
    port: 8443,
    tls: {
      certFile: resolve('tls/gateway.crt'),
      keyFile: resolve('tls/gateway.key'),
      clientCaFile: undefined,
      certificates: [],
    },
    plainPath: false,
    ...{ http2: true, h2c: false },
  })
  assert.partialDeepStrictEqual(full.admin, {
    host: '127.0.0.1',
    port: 9090,
    page: {
      token: 'a client secret of the tests',
      hosts: ['gateway.internal.example.com'],
      showClaim: [fields, 'costCentre'],
    },
  })
  assert.equal(full.reservedPrefix, '/auth/gatehouse/')
  assert.partialDeepStrictEqual(full.trustedProxies, [
    { address: '10.0.0.0', prefix: 8, family: 'ipv4' },
    { address: '192.0.2.7', prefix: 32, family: 'ipv4' },
    { address: 'fd00::', prefix: 8, family: 'ipv6' },
  ])
  assert.equal(full.workers, 4)
  assert.partialDeepStrictEqual(full.providers[0], {
    name: 'provider',
    setting: 'provider',
    title: '',
    prefix: full.reservedPrefix,
    cookieName: full.session.cookie.name,
    renamedClaims: {},
    issuer: 'https://id.example.com',
    client_id: 'orders',
    client_secret: 'the client secret of the tests',
    token_endpoint_auth_method: 'client_secret_post',
    metadata: undefined,
    clientKey: undefined,
    clientAssertionAudience: 'issuer',
    clientCertificate: undefined,
    pushedAuthorizationRequests: 'when_required',
    signedRequests: false,
    dpop: false,
    resource: [],
    linkParams: [],
    profile: undefined,
    egressProxy: undefined,
    response_mode: 'form_post',
    frontchannelLogout: true,
    globalTokenRevocation: undefined,
    signals: {
      transmitter: 'https://events.example.com',
      audience: ['orders'],
      signingAlg: 'ES256',
      delivery: 'poll',
      stream: 'existing',
      pollUrl: 'https://events.example.com/poll',
      authorization: { kind: 'client_credentials', scopes: ['ssf.read'] },
      pushSecret: undefined,
      trustedSubjects: ['email'],
      events: {
        'session-revoked': 'ignore',
        'token-claims-change': 'reread_claims',
        'credential-change': 'end',
        'assurance-level-change': 'step_up',
        'device-compliance-change': 'end',
        'account-disabled': 'end',
        'account-purged': 'end',
        'account-credential-change-required': 'end',
      },
    },
    scopes: ['openid', 'profile', 'email', 'offline_access'],
    authorizationParams: { acr_values: 'mfa' },
    endSessionParams: { ui_locales: 'de' },
    endSessionForm: 'always',
    longestEndSessionUrlBytes: 4096,
    claims: { fields },
    idTokenClaims: ['groups', fields],
    oauth2: undefined,
    claimSources: [
      { issuer: 'https://bank.example.com', jwks_uri: 'https://bank.example.com/jwks.json', endpoints: [] },
    ],
    claimsFrom: [
      {
        id: full.providers[0].claimsFrom[0]?.id,
        name: fields,
        isMerged: false,
        everyMs: 15 * 60_000,
        sources: [
          {
            url: ['https://api.example.com/', [fields, 'id'], '/teams'],
            urlText: 'https://api.example.com/{fields.id}/teams',
            origin: 'https://api.example.com',
            token: 'access_token',
            scopes: [],
            select: { path: [], elements: { where: [], selection: { path: ['name'] } } },
            selectText: '[].name',
            absentIsEmpty: false,
            pages: { kind: 'link' },
          },
        ],
      },
    ],
    userinfoClaims: ['given_name', 'family_name'],
    id_token_signed_response_alg: 'ES256',
    ...unencrypted,
    clockToleranceMs: 10_000,
    timeoutMs: 3_000,
    ca,
  })
  assert.partialDeepStrictEqual(full.session, {
    keys: [
      Buffer.from('000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f', 'hex'),
      Buffer.from(environment['SESSION_KEY'] ?? '', 'base64'),
    ],
    isKeyGenerated: false,
    store: {
      kind: 'redis',
      url: new URL('rediss://redis.example.com:6379/2'),
      username: 'gatehouse',
      password: 'a redis password of the tests',
      tls: { ca, cert: undefined, key: undefined },
      keyPrefix: 'orders:',
      timeoutMs: 500,
      replicasAcknowledge: 0,
    },
    idleTimeoutMs: 900_000,
    absoluteTimeoutMs: 28_800_000,
    refreshBeforeMs: 120_000,
    pollUserinfoMs: 60_000,
    storeOutageGraceMs: 30_000,
    maxPerPerson: { count: 5, whenExceeded: 'refuse' },
    page: true,
    cookie: { name: '__Host-orders', secure: true, sameSite: 'strict' },
    embeddedIn: [],
    deviceBinding: {
      isOn: true,
      isRequired: false,
      cookieLifetimeMs: 120_000,
      registrationGraceMs: 30_000,
      onMisuse: 'end',
    },
  })
  const { logo, templates, ...pages } = full.pages
  assert.deepEqual(pages, {
    name: 'Example Ltd',
    language: 'de',
    colours: {
      light: { background: '#f2f4f7', surface: '#ffffff', text: '#1d2330', accent: '#8a1538', onAccent: '#ffffff' },
      dark: { background: '#14171e', surface: '#111111', text: '#e4e7ee', accent: '#ffaacc', onAccent: '#000000' },
    },
    support: { text: 'Service desk', url: 'mailto:help@example.com' },
  })
  assert.equal(logo, `data:image/png;base64,${readFileSync('pages/logo.png', 'base64')}`)
  assert.deepEqual(Object.keys(templates), ['forbidden', 'sign-out'])
  assert.deepEqual(templates.forbidden?.styles, ['\nbody { font-family: serif }\n'])
  assert.partialDeepStrictEqual(full.limits, {
    headerSizeBytes: 16_384,
    headerCount: 50,
    headersTimeoutMs: 10_000,
    bodyIdleTimeoutMs: 30_000,
    bodyRateBytesPerSecond: 1024,
    connections: 500,
    areConnectionsSet: true,
    perClient: {
      connections: 50,
      signIns: { count: 10, perMs: 1_000 },
      callbacks: { count: 100, perMs: 60_000 },
      callbacksAtOnce: 5,
      refusedLogoutTokens: { count: 60, perMs: 3_600_000 },
    },
  })
  assert.partialDeepStrictEqual(full.shutdown, { drainTimeoutMs: 30_000 })
  assert.partialDeepStrictEqual(full.log, { level: 'warn', access: false, format: 'pretty' })
  const { ca: tracingCa, ...tracing } = full.tracing ?? {}
  assert.match(tracingCa ?? '', /BEGIN CERTIFICATE/)
  assert.deepEqual(tracing, {
    otlp: new URL('https://127.0.0.1:4318/v1/traces'),
    sample: 0.5,
    serviceName: 'orders-gateway',
    resource: { 'deployment.environment.name': 'production' },
    headers: { Authorization: 'a client secret of the tests' },
  })
})

test('an upstream of a full file: headers, rules, logout and tests, with short names of claims made long', () => {
  const [orders] = config('full.yaml').upstreams

  const fields = 'https://id.example.com/claims/fields'
  const plain = { join: ',', encode: 'utf8', maxBytes: 4096, tooLong: 'omit' as const, required: false }
  assert.deepEqual(orders?.hosts, ['orders.example.com'])
  assert.deepEqual(orders.headers, [
    { name: 'X-Remote-User', source: { kind: 'claim', path: ['sub'] }, ...plain },
    { name: 'X-Name', source: { kind: 'template', template: [['given_name'], ' ', ['family_name']] }, ...plain },
    { name: 'X-Cost-Centre', source: { kind: 'claim', path: [fields, 'costCentre'] }, ...plain },
    { name: 'X-First-Group', source: { kind: 'claim', path: [fields, 'groups', 0] }, ...plain },
    {
      name: 'X-Groups',
      source: { kind: 'claim', path: [fields, 'groups'] },
      join: ';',
      encode: 'percent',
      maxBytes: 2048,
      tooLong: 'omit' as const,
      required: true,
    },
    {
      name: 'X-Place',
      source: { kind: 'template', template: [[fields, 'site'], ', {', [fields, 'country'], '}'] },
      ...plain,
      encode: 'rfc8187',
    },
  ])
  const signedIn = {
    ...{ name: undefined, methods: undefined, clients: undefined, access: 'signed_in', unauthenticated: 'auto' },
    ...{ require: [], mode: 'enforce' },
  }
  const groups = {
    kind: 'claim',
    claim: [fields, 'groups'],
    claimText: 'fields.groups',
    ...{ equals: undefined, anyOf: undefined, allOf: undefined, noneOf: undefined },
    ...{ contains: undefined, beginsWith: undefined, endsWith: undefined, matches: undefined },
  }
  const written = orders.rules.map(({ place, setting, ...rule }) => ({ place, setting, rule }))
  const lines = readFileSync('full.yaml', 'utf8').split('\n')
  for (const [index, { place, setting, rule }] of written.entries()) {
    assert.equal(setting, `upstreams.orders.rules[${index}]`)
    assert.ok(lines[(place?.line ?? 0) - 1]?.includes(rule.path.text), setting)
  }
  assert.deepEqual(
    written.map(({ rule }) => rule),
    [
      { ...signedIn, path: parsePathPattern('/static/*'), access: 'public' },
      { ...signedIn, path: parsePathPattern('/api/*'), unauthenticated: '401' },
      { ...signedIn, path: parsePathPattern('/news/*'), access: 'optional' },
      {
        ...signedIn,
        path: parsePathPattern('/admin/*'),
        methods: ['GET', 'POST'],
        require: [{ ...groups, anyOf: ['admins'] }],
      },
      {
        ...signedIn,
        path: parsePathPattern('/reports/*/print'),
        unauthenticated: 'redirect',
        require: [
          { ...groups, allOf: ['staff', 'printing'] },
          { ...groups, noneOf: ['guests'] },
        ],
      },
    ],
  )
  assert.equal(orders.cache, 'no_store')
  assert.deepEqual(orders.trustedOrigins, ['https://portal.example.com', 'https://wiki.example.com'])
  assert.deepEqual(orders.logout, {
    paths: [
      { path: parsePathPattern('/auth/logout'), query: [], methods: undefined },
      { path: parsePathPattern('/index'), query: [['do', 'logout']], methods: undefined },
    ],
    passFirst: false,
    cookies: [
      {
        names: parseNamePattern('JSESSIONID'),
        paths: ['/auth', '/auth/'],
        domains: ['orders.example.com', 'example.com'],
      },
    ],
    call: undefined,
  })
  assert.deepEqual(orders.tests, [
    {
      place: { file: 'full.yaml', line: 79, column: 9 },
      setting: 'upstreams.orders.tests[0]',
      as: { sub: 'u1', [fields]: { groups: ['admins'] } },
      method: 'GET',
      path: '/admin/',
      host: undefined,
      from: undefined,
      at: undefined,
      bearer: false,
      key: false,
      serviceAccount: undefined,
      clientCertificate: undefined,
      mcp: undefined,
      expect: 'pass',
      headers: { 'X-Remote-User': 'u1', 'X-Cost-Centre': null },
    },
    {
      place: { file: 'full.yaml', line: 80, column: 9 },
      setting: 'upstreams.orders.tests[1]',
      as: undefined,
      method: 'POST',
      path: '/api/orders',
      host: undefined,
      from: undefined,
      at: undefined,
      bearer: false,
      key: false,
      serviceAccount: undefined,
      clientCertificate: undefined,
      mcp: undefined,
      expect: 'unauthorized',
      headers: {},
    },
  ])
})

test('An upstream with its own external_url is reached by that host', () => {
  const shop = config('full.yaml').upstreams[1]

  assert.deepEqual(shop?.hosts, ['shop.example.com'])
  assert.equal(shop.externalUrl.href, 'https://shop.example.com/')
  assert.equal(shop.path, '/shop/')
  assert.equal(shop.url.href, 'https://shop.internal:8443/')
  assert.equal(shop.hostHeader, 'upstream')
  assert.equal(shop.idleTimeoutMs, 0)
  assert.equal(shop.tls.ca, readFileSync('tls/gateway.crt', 'latin1'))
})

for (const [where, name, secure] of [
  ['https://orders.example.com', '__Host-gatehouse', true],
  ['http://localhost:8080', 'gatehouse', false],
] as const) {
  test(`the session cookie at ${where}`, (t) => {
    const file = written(t, smallest.replace('https://orders.example.com', where))

    const { cookie } = config(file).session

    assert.deepEqual(cookie, { name, secure, sameSite: 'lax' })
  })
}

for (const [store, workers, processes] of [
  ['memory', 'auto', 1],
  ['memory', '8', 1],
  ['{ redis: { url: redis://127.0.0.1 } }', 'auto', availableParallelism()],
  ['{ redis: { url: redis://127.0.0.1 } }', '8', 8],
] as const) {
  test(`workers: ${workers} with the store ${store} are ${processes} processes`, (t) => {
    const session = `session: { keys: [{ env: SESSION_KEY }], store: ${store} }`
    const file = written(t, `${smallest}\nworkers: ${workers}\n${session}\n`)

    assert.equal(config(file).workers, processes)
  })
}

for (const [listen, host, port] of [
  ['127.0.0.1:9000', '127.0.0.1', 9000],
  ["'[::1]:9000'", '::1', 9000],
  ['localhost:9000', 'localhost', 9000],
  ['9000', '0.0.0.0', 9000],
  ["'9000'", '0.0.0.0', 9000],
  ['{ address: 9000 }', '0.0.0.0', 9000],
  ['{}', '0.0.0.0', 8080],
] as const) {
  test(`listen: ${listen}`, (t) => {
    const expected = { host, port, tls: undefined, plainPath: true, http2: true, h2c: false }
    assert.deepEqual(config(written(t, `${smallest}\nlisten: ${listen}\n`)).listen, expected)
  })
}

test('an admin port alone is served on this machine only', (t) => {
  assert.deepEqual(config(written(t, `${smallest}\nadmin: { listen: 9090 }\n`)).admin, {
    host: '127.0.0.1',
    port: 9090,
    page: undefined,
  })
})

test('Paths of secrets are relative to their file, and a line break at the end is ignored', (t) => {
  const file = written(t, smallest.replace('{ env: CLIENT_SECRET }', '{ file: secrets/client_secret }'))
  mkdirSync(join(file, '../secrets'))
  writeFileSync(join(file, '../secrets/client_secret'), ' with spaces and = signs \r\n\n')

  assert.equal(config(file).providers[0].client_secret, ' with spaces and = signs ')
})

test('The upstreams of included files follow those of the file', () => {
  const { upstreams } = config('include.yaml')

  assert.deepEqual(
    upstreams.map(({ name }) => name),
    ['orders', 'reports', 'shop'],
  )
})

test('A claim named like a property of Object.prototype is an ordinary name', (t) => {
  const file = written(t, smallest.replace('X-Email: email', 'X-Email: constructor.name'))

  assert.deepEqual(config(file).upstreams[0]?.headers[1]?.source, {
    kind: 'claim',
    path: parseClaimPath('constructor.name'),
  })
})

test('A byte order mark is ignored', (t) => {
  assert.ok(loadConfig(written(t, `\ufeff${smallest}`), environment).ok)
})

test('Windows line endings are accepted', (t) => {
  assert.ok(loadConfig(written(t, smallest.replaceAll('\n', '\r\n')), environment).ok)
})

/** How often a file repeats what takes long to read. */
const repeated = searchFor(100_000)

for (const [what, content, line, told] of [
  ['nothing', '', 0, /^is empty$/],
  ['a NUL character', smallest.replace('sub', 's\0b'), 11, /^has a NUL character here$/],
  ['UTF-16', Buffer.from(`\ufeff${smallest}`, 'utf16le'), 0, /^is not text in UTF-8$/],
  ['10 MB', `#${'x'.repeat(10_000_000)}`, 0, /^is larger than 1 MiB$/],
  ['too many values', `version: 1\na: [${'1, '.repeat(60_000)}1]`, 1, /^has more than 50000 values/],
  ['deep lists', `version: 1\na: ${'['.repeat(repeated)}`, 2, /nested too deeply|not closed|cannot stand here/],
  ['deep maps', `version: 1\na: ${'{ a: '.repeat(60)}1${' }'.repeat(60)}`, 1, /^is nested too deeply$/],
  ['unclosed quotes', `version: 1\na: ${'"'.repeat(repeated + 1)}`, 2, /./],
  ['anchors', `version: 1\na: ${'&a '.repeat(repeated)}`, 2, /./],
  ['many keys', `version: 1\n${': \n'.repeat(repeated)}`, 1, /./],
] as const) {
  test(`a file of ${what} is refused in time`, { timeout: 30_000 }, (t) => {
    const [first] = complaints(written(t, content))

    assert.match(first?.message ?? '', told)
    assert.equal(first?.line, line)
  })
}

test('A missing file is reported', (t) => {
  const file = join(folder(t), 'gateway.yaml')

  assert.deepEqual(complaints(file).map(formatDiagnostic), [
    `${file}  error  does not exist\n    create one with "gatehouse init", or name another with --config`,
  ])
})

test('A missing configuration is reported with its full path and a hint', () => {
  const [told] = complaints('nowhere.yaml')

  assert.equal(told?.message, `does not exist: the full path is ${join(process.cwd(), 'nowhere.yaml')}`)
  assert.match(told.hint ?? '', /create one with "gatehouse init", or name another with --config/)
})

test('A directory instead of a file is reported', (t) => {
  const path = folder(t)

  assert.deepEqual(complaints(path).map(formatDiagnostic), [`${path}  error  is a directory, not a file`])
})

test('A path below a regular file is reported', (t) => {
  const file = join(written(t, smallest), 'gateway.yaml')

  assert.match(complaints(file)[0]?.message ?? '', /^does not exist/)
})

test('An invalid configuration is invalid with any number of warnings', (t) => {
  const loaded = loadConfig(written(t, `${smallest}\nworkers: 4\nfoo: bar\n`), environment)

  assert.ok(!loaded.ok)
  assert.deepEqual(
    loaded.diagnostics.map(({ severity, path }) => `${severity} ${path}`),
    ['warning workers', 'error foo'],
  )
})

test('The files of a configuration include its logo and templates', () => {
  const { files } = loadConfig('full.yaml', environment)

  for (const file of ['pages/logo.png', 'pages/own', 'pages/own/forbidden.html', 'pages/own/sign-out.html'])
    assert.ok(files.has(file), file)
})
