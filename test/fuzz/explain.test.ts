import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { demoPeople, fieldsClaim } from '../../examples/demo/people.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { Claims } from '../../src/core/claims.ts'
import { explain, type Explanation } from '../../src/explain/decision.ts'
import { personWith } from '../../src/explain/trial.ts'
import { headerPairs } from '../../src/explain/upstream-request.ts'
import { folderWith } from '../support/command-line.ts'
import { formatDiagnostics } from '../support/diagnostics.ts'
import { exchangeRaw, headerOf, type RawResponse } from '../support/raw-exchange.ts'
import { startStrictUpstream, type SeenRequest } from '../support/strict-upstream.ts'
import { secrets, startWorld } from '../support/world.ts'
import { fuzz, fuzzMs } from './fuzzing.ts'

const paths = [
  '/',
  '/a',
  '/a/b',
  '/A/b',
  '/a/',
  '/api/x',
  '/api/',
  '/Api/X',
  '/logout',
  '/logout/',
  '/app/a',
  '/app/logout',
]
const oddPaths = [
  ...[
    '/a;x/b',
    '/a;/../b',
    '/a//b',
    '/a/./b',
    '/a/../api/x',
    '/%61/b',
    '/a%2fb',
    '/a%252fb',
    '/api;v=1/x',
    '/a%3fb',
    '/%2e%2e/x',
  ],
  ...[
    '/.gatehouse/sign-in',
    '/.gatehouse/callback?code=x',
    '/.gatehouse/kept-request',
    '/.Gatehouse/x',
    '/.gatehouse;x/session',
    '/a?b=/../c',
    '/?x',
    '/a/b?token=1#x',
    '/logout;jsessionid=1',
  ],
  ...['/a\\b', '/a%00', '/%c3%bc', '/a.', '/a%20', 'http://orders.example.com/a', 'http://other.example.com/api/x'],
  ...['http://orders.example.com', 'HTTP://ORDERS.example.com/a', `/${'x'.repeat(5000)}`, `/a?${'x'.repeat(7000)}`],
]
const patterns = ['/*', '/a', '/a/*', '/*/b', '/api/*', '/api/x', '/app/*', '/logout', '/', '/a/b']
const hosts = [
  'orders.example.com',
  'ORDERS.example.com:8080',
  'orders.example.com.',
  'api.example.com',
  'other.example.com',
]

const methodLists = [['GET'], ['POST'], ['GET', 'POST'], ['PUT', 'DELETE'], ['HEAD'], ['OPTIONS']]
const requirements = [
  '{ claim: sub, any_of: [jane] }',
  '{ claim: fields.groups, any_of: [admins, sales] }',
  '{ claim: fields.groups, all_of: [admins, finance] }',
  '{ claim: fields.groups, none_of: [warehouse] }',
  '{ claim: fields, none_of: [x] }',
  '{ claim: nothing, none_of: [x] }',
  '{ claim: nothing, all_of: [x] }',
  '[{ claim: email, any_of: [jane.doe@example.com, noa.levi@example.com] }, { claim: fields.groups, none_of: [finance] }]',
]

const rule = fc
  .record({
    path: fc.constantFrom(...patterns),
    methods: fc.option(fc.constantFrom(...methodLists), { nil: undefined }),
    access: fc.constantFrom('public', 'optional', 'signed_in', 'signed_in'),
    unauthenticated: fc.constantFrom('auto', 'redirect', '401'),
    require: fc.option(fc.constantFrom(...requirements), { nil: undefined }),
  })
  .map(({ path, methods, access, unauthenticated, require }) => {
    const asked = access === 'signed_in' && require !== undefined ? `, require: ${require}` : ''
    const of = methods === undefined ? '' : `, methods: [${methods.join(', ')}]`
    const otherwise = access === 'signed_in' ? `, unauthenticated: ${unauthenticated}` : ''
    return `{ path: "${path}"${of}, access: ${access}${otherwise}${asked} }`
  })

const identity = [
  'X-Remote-User: sub',
  'X-Name: "{given_name} {family_name}"',
  'X-Groups: { claim: fields.groups, join: "|", encode: percent }',
  'X-Latin: { claim: given_name, encode: latin1 }',
  'X-Short: { claim: email, max_bytes: 18b }',
  'X-Wanted: { claim: fields.groups, required: true }',
  'X-Object: fields',
  'X-Forwarded-User: sub',
  'Authorization: email',
]

const upstream = fc
  .record({
    hosts: fc.subarray(['orders.example.com', 'api.example.com']),
    path: fc.constantFrom('/', '/', '/app', '/api/'),
    hostHeader: fc.constantFrom('client', 'upstream'),
    headers: fc.subarray(identity),
    rules: fc.array(rule, { maxLength: 5 }),
    trusted: fc.constantFrom('[]', 'any', '[https://portal.example.com]'),
    logout: fc.subarray(['/logout', '/app/*', '/a/b']),
  })
  .map((settings) => ({
    hosts: settings.hosts,
    path: settings.path,
    yaml: (url: URL) => `url: ${url.origin}
    ${settings.hosts.length === 0 ? '' : `hosts: [${settings.hosts.join(', ')}]`}
    path: ${settings.path}
    host_header: ${settings.hostHeader}
    headers: {${settings.headers.join(', ')}}
    rules: [${settings.rules.join(', ')}]
    trusted_origins: ${settings.trusted}
    logout: { paths: [${settings.logout.map((path) => `"${path}"`).join(', ')}] }`,
  }))

const header = fc.constantFrom(
  ...[
    'Accept: text/html',
    'Accept: text/html;q=0, */*',
    'Accept: */*',
    'Accept: application/json',
    'accept: text/html',
  ],
  ...['Sec-Fetch-Mode: navigate', 'Sec-Fetch-Mode: cors', 'Sec-Fetch-Dest: document', 'Sec-Fetch-Dest: iframe'],
  ...['Sec-Fetch-Site: cross-site', 'Sec-Fetch-Site: same-origin', 'Sec-Fetch-Site: none', 'Sec-Fetch-Site: same-site'],
  ...[
    'Origin: https://portal.example.com',
    'Origin: null',
    'Origin: https://orders.example.com',
    'Origin: http://orders.example.com',
  ],
  ...[
    'X-Requested-With: XMLHttpRequest',
    'Upgrade: websocket',
    'Connection: Upgrade',
    'Connection: close, X-Note',
    'Upgrade: h2c',
  ],
  ...['Upgrade: h2c, websocket', 'Connection: keep-alive, Upgrade', 'Upgrade: TLS/1.0', 'HTTP2-Settings: AAMAAABkAAQ'],
  ...[
    'X-Remote-User: mallory',
    'x_remote_user: mallory',
    'X-Remote--User: mallory',
    'X-Note: hello',
    'Proxy: http://evil.example',
  ],
  ...[
    'X-Forwarded-For: 192.0.2.1',
    'X-Forwarded-Host: orders.example.com',
    'X-Forwarded-Proto: https',
    'X-Forwarded-User: mallory',
  ],
  ...[
    'Forwarded: for=192.0.2.1;host=api.example.com;proto=https',
    'X-Forwarded-Host: evil host',
    'X-Original-URL: /admin',
    'TE: trailers',
  ],
  ...[
    'Cookie: theme=dark',
    'Cookie: __Host-gatehouse=x; a=b',
    'Cookie: gatehousex=1',
    'X-HTTP-Method-Override: DELETE',
    'X-Request-Id: mine',
  ],
  ...[
    'Authorization: Bearer mine',
    'Referer: http://orders.example.com/',
    'Expect: 100-continue',
    'Expect: nothing',
    'Host: evil.example',
    'X-Empty:',
  ],
  ...[
    'Content-Length: 0',
    'Transfer-Encoding: chunked',
    'Transfer-Encoding: gzip, chunked',
    'traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  ],
  ...[
    'Range: bytes=0-1',
    'Trailer: X-Note',
    'Keep-Alive: timeout=5',
    'Accept: application/xhtml+xml',
    'X-Real-IP: 192.0.2.1',
  ],
)

const request = fc.record({
  method: fc.constantFrom(
    'GET',
    'GET',
    'GET',
    'POST',
    'HEAD',
    'PUT',
    'DELETE',
    'OPTIONS',
    'PATCH',
    'TRACE',
    'PROPFIND',
    'FOO',
  ),
  target: fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...paths) }, fc.constantFrom(...oddPaths)),
  host: fc.oneof({ weight: 4, arbitrary: fc.constant('orders.example.com') }, fc.constantFrom(...hosts)),
  headers: fc.array(header, { maxLength: 5 }),
  person: fc.constantFrom(undefined, undefined, 'jane', 'zoe', 'samir', 'noa'),
})

/** Whether two upstreams match the same requests. A configuration with both is invalid. */
function isAmbiguous(one: { hosts: string[]; path: string }, other: { hosts: string[]; path: string }): boolean {
  const inBoth = one.hosts.some((host) => other.hosts.includes(host))
  return one.path === other.path && (inBoth || one.hosts.length + other.hosts.length === 0)
}

const wholeConfiguration = fc.record({
  upstreams: fc.uniqueArray(upstream, { minLength: 1, maxLength: 2, comparator: isAmbiguous }),
  sameSite: fc.constantFrom('lax', 'strict'),
  trusted: fc.constantFrom('[]', '[127.0.0.0/8]', '[127.0.0.0/8, 192.0.2.0/24]'),
  requests: fc.array(request, { minLength: 20, maxLength: 40 }),
})

/** What the gateway does with a request, as far as explain and the gateway both show it. */
interface Outcome {
  readonly status: number | undefined
  readonly code: string | undefined
  readonly location: string | undefined
  readonly upstream: string | undefined
  readonly target: string | undefined
  readonly headers: readonly string[]
}

const outcomes = ['pass', 'sign_in', 'unauthorized', 'forbidden', 'cross_site', 'no_route', 'sign_out', 'refused']

/** Why an endpoint of the gateway does not serve a request. `explain` predicts each of them. */
const unexpectedOfEndpoint = ['ERR_NO_ROUTE', 'ERR_METHOD_NOT_ALLOWED', 'ERR_WRONG_HOST', 'ERR_UNAUTHENTICATED']

test('gatehouse explain predicts what the gateway does with any request', async (t) => {
  const applications = { first: await startStrictUpstream(t), second: await startStrictUpstream(t) }
  const names = ['first', 'second'] as const
  const world = await startWorld(t, { upstream: applications.first.url, providerSettings: 'timeout: 1s' })
  const [replica] = world.replicas
  assert.ok(replica)
  const cookies = new Map<string, string>()
  for (const { sub } of demoPeople) {
    const browser = world.browser(sub)
    assert.equal((await browser.get(`${world.url}/`)).status, 200)
    cookies.set(sub, browser.cookieHeader)
  }
  const port = Number(new URL(world.url).port)
  const counts = new Map<string, number>()
  const notShown = () => outcomes.filter((outcome) => !counts.has(outcome))

  await fuzz(
    t,
    wholeConfiguration,
    async ({ upstreams, sameSite, trusted, requests }) => {
      const yaml = `version: 1
external_url: http://orders.example.com
listen: 127.0.0.1:${port}
trusted_proxies: ${trusted}
provider: { issuer: "${world.provider.issuer}", client_id: orders, client_secret: { env: CLIENT_SECRET }, timeout: 1s, claims: { fields: "${fieldsClaim}" } }
session: { keys: [{ env: SESSION_KEY }], store: memory, cookie: { same_site: ${sameSite} } }
upstreams:
${upstreams.map(({ yaml }, index) => `  ${names[index]}:\n    ${yaml(applications[names[index] ?? 'first'].url)}`).join('\n')}
`
      const loaded = loadConfig(`${folderWith(t, { 'gateway.yaml': yaml })}/gateway.yaml`, secrets)
      assert.ok(loaded.ok, loaded.ok ? '' : `${formatDiagnostics(loaded.diagnostics)}\n${yaml}`)
      await replica.gateway.reload(loaded.config)

      for (const { method, target, host, headers, person } of requests) {
        const cookie = person === undefined ? [] : [`Cookie: ${cookies.get(person)}`]
        const lines = [`Host: ${host}`, ...headers, ...cookie]
        const rawHeaders = lines.flatMap((line) => [
          line.slice(0, line.indexOf(':')),
          line.slice(line.indexOf(':') + 1).trim(),
        ])
        const explanation = explain(
          { method, target, rawHeaders, peer: '127.0.0.1' },
          personWith(claimsOf(person), loaded.config),
          loaded.config,
        )
        const { outcome } = explanation.decision
        counts.set(outcome, (counts.get(outcome) ?? 0) + 1)
        // A script would sign the person out, and the next requests would have no session.
        if (outcome === 'sign_out' && explanation.decision.status === undefined) continue
        for (const { forget } of Object.values(applications)) forget()
        replica.access.length = 0
        const isChunked = /^transfer-encoding:/im.test(lines.join('\n'))
        const bytes = `${method} ${target} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${isChunked ? '0\r\n\r\n' : ''}`
        const response = await exchangeRaw(port, bytes, { quietMs: 5, waitMs: 1000 })
        const seen = names.flatMap((name) => applications[name].seen.map((one) => ({ name, one })))
        const done = () =>
          `${JSON.stringify(bytes)}\n${yaml}\n${JSON.stringify(explanation, null, 1)}\n${JSON.stringify(seen)}\n${response.text}`

        assert.ok(seen.length <= 1, done())
        if (outcome === 'own_url') {
          assert.equal(seen.length, 0, done())
          assert.ok(!unexpectedOfEndpoint.some((code) => replica.access[0]?.['code'] === code), done())
          continue
        }
        const told = said(explanation)
        const real = happened(response, seen[0], replica.access)
        if (replica.access.length === 0 && told.status !== undefined && told.status >= 400) {
          // The HTTP parser rejects this request first, without an error code and without a log
          // line.
          assert.equal(seen.length, 0, done())
          assert.ok(real.status === undefined || real.status >= 400, done())
        } else assert.deepEqual(told, real, done())
      }
    },
    fuzzMs / 2,
    () => notShown().length === 0,
  )
  t.diagnostic(JSON.stringify(Object.fromEntries(counts)))
  assert.deepEqual(notShown(), [])
})

function claimsOf(sub: string | undefined): Claims | undefined {
  const person = demoPeople.find((one) => one.sub === sub)
  if (person === undefined) return undefined
  const { fields, ...others } = person
  return { ...others, [fieldsClaim]: fields } as unknown as Claims
}

function said({ decision, upstream }: Explanation): Outcome {
  return {
    status: decision.status,
    code: decision.status !== undefined && decision.status >= 400 ? decision.code : undefined,
    location: decision.status === 303 ? decision.location : undefined,
    upstream: upstream?.name,
    target: upstream && new URL(upstream.url).pathname + new URL(upstream.url).search,
    headers: comparable([...(upstream?.others ?? []), ...(upstream?.identity ?? [])]),
  }
}

function happened(
  { text, statuses }: RawResponse,
  seen: { readonly name: string; readonly one: SeenRequest } | undefined,
  access: readonly Readonly<Record<string, unknown>>[],
): Outcome {
  const [status] = statuses
  return {
    status: seen === undefined ? status : undefined,
    code: seen === undefined && (status ?? 0) >= 400 ? (access[0]?.['code'] as string | undefined) : undefined,
    location: status === 303 ? headerOf(text, 'location') : undefined,
    upstream: seen?.name,
    target: seen?.one.target,
    headers: comparable(seen === undefined ? [] : headerPairs(seen.one.headers.flat())),
  }
}

/** Removes the fields of the upstream connection and those that are random for each request. */
function comparable(headers: readonly (readonly [string, string])[]): readonly string[] {
  const aboutTheConnection = [
    'connection',
    'content-length',
    'transfer-encoding',
    'upgrade',
    'x-request-id',
    'gatehouse-loop',
  ]
  return headers
    .map(([name, value]) => [name.toLowerCase(), value.trim()] as const)
    .filter(([name]) => !aboutTheConnection.includes(name))
    .map((line) => line.join(': '))
    .sort()
}
