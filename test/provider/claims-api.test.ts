import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { readClaimsFrom } from '../../src/config/build/claims-from.ts'
import { Report } from '../../src/config/document/report.ts'
import type { ApiClaimConfig } from '../../src/config/model/provider.ts'
import type { ClaimSourceSettings } from '../../src/config/settings.ts'
import type { ApiReading, Claims } from '../../src/core/claims.ts'
import type { LogFields } from '../../src/observe/log.ts'
import { type ApiServer, cloudIdentity, graph, linked, startApi } from '../support/claims-apis.ts'
import { bearer, paths, sendJson, startSigningProvider } from '../support/signing-provider.ts'
import { clientOf, recordedWarnings } from './a-client.ts'
import { movableClock } from './expectations.ts'

/** A place whose settings are valid. */
const place = new Report('gateway.yaml', {}).at('')

function claimsFrom(...sources: readonly Partial<ClaimSourceSettings>[]): readonly ApiClaimConfig[] {
  const usual = { token: 'access_token', scopes: [], absentIsEmpty: false, as: 'groups', merge: false } as const
  const claims = readClaimsFrom({ claimsFrom: sources.map((source) => ({ ...usual, ...source })) }, {}, place)
  assert.deepEqual(place.report.diagnostics, [])
  return claims
}

interface Outcome {
  readonly reading: ApiReading | undefined
  readonly warnings: readonly LogFields[]
}

/** Reads the claim of these sources for Jane. */
async function read(
  t: TestContext,
  sources: readonly Partial<ClaimSourceSettings>[],
  claims: Claims = { sub: 'jane' },
  timeoutMs = 10_000,
): Promise<Outcome> {
  const provider = await startSigningProvider(t, { claimsFrom: claimsFrom(...sources), timeoutMs })
  const { log, warnings } = recordedWarnings()
  const client = clientOf(t, provider, movableClock(), log)
  const readings = await client.apis.read(provider.config.claimsFrom, { sub: 'jane', access_token: 'at-1', claims })
  return { reading: [...readings.values()][0], warnings: warnings.map(({ fields }) => fields) }
}

const nextLink = { next: '"@odata.nextLink"' }
const token = { next: 'nextPageToken', parameter: 'pageToken' }
const teams = ['admins', 'web', 'ops'].map((slug) => ({ slug, html_url: `https://github.com/orgs/acme/teams/${slug}` }))

for (const [what, respond, path, settings, expected] of [
  [
    'Microsoft Graph',
    graph(['g-1', 'g-2', 'g-3', 'g-4', 'g-5']),
    '/v1.0/me/transitiveMemberOf?$select=id&$top=999',
    { select: 'value[].id', pages: nextLink },
    ['g-1', 'g-2', 'g-3', 'g-4', 'g-5'],
  ],
  [
    'Microsoft Graph, for a person without groups',
    graph([]),
    '/v1.0/me/memberOf',
    { select: 'value[].id', pages: nextLink },
    [],
  ],
  [
    'Google Cloud Identity',
    cloudIdentity(['a@example.com', 'b@example.com', 'c@example.com']),
    "/v1/groups/-/memberships:searchDirectGroups?query=member_key_id=='{email}'",
    { select: 'memberships[].groupKey.id', pages: token, absentIsEmpty: true },
    ['a@example.com', 'b@example.com', 'c@example.com'],
  ],
  [
    'Google Cloud Identity, for a person without groups',
    cloudIdentity([]),
    '/v1/groups/-/memberships:searchDirectGroups',
    { select: 'memberships[].groupKey.id', pages: token, absentIsEmpty: true },
    [],
  ],
  [
    'GitHub teams',
    linked(teams),
    '/user/teams?per_page=100',
    { select: '[].html_url', pages: { next: 'link' } },
    teams.map(({ html_url }) => html_url),
  ],
  [
    'GitLab groups',
    linked([{ full_path: 'acme' }, { full_path: 'acme/web' }, { full_path: 'acme/ops' }]),
    '/api/v4/groups?min_access_level=10',
    { select: '[].full_path', pages: { next: 'link' } },
    ['acme', 'acme/web', 'acme/ops'],
  ],
  [
    'Okta groups',
    linked([
      { id: '1', profile: { name: 'Everyone' } },
      { id: '2', profile: { name: 'Staff' } },
    ]),
    '/api/v1/users/{sub}/groups',
    { select: '[].profile.name', pages: { next: 'link' } },
    ['Everyone', 'Staff'],
  ],
] as const)
  test(`the groups of ${what} are read, on all pages`, async (t) => {
    const api = await startApi(t, respond)

    const { reading, warnings } = await read(t, [{ url: `${api.origin}${path}`, ...settings }], {
      sub: 'jane',
      email: 'jane@example.com',
    })

    assert.deepEqual(reading, { kind: 'value', value: expected })
    assert.deepEqual(warnings, [])
    for (const { headers } of api.requests)
      assert.deepEqual([headers.authorization, headers['user-agent']], ['Bearer at-1', 'gatehouse'])
  })

test('several entries of one claim are read together, and a value that is in both counts once', async (t) => {
  const api = await startApi(t, (_req, res, { pathname }) =>
    sendJson(
      res,
      pathname === '/orgs' ? [{ login: 'acme' }, { login: 'others' }] : [{ slug: 'acme' }, { slug: 'web' }],
    ),
  )

  const { reading } = await read(t, [
    { url: `${api.origin}/orgs`, select: '[].login' },
    { url: `${api.origin}/teams`, select: '[].slug' },
  ])

  assert.deepEqual(reading, { kind: 'value', value: ['acme', 'others', 'web'] })
})

test('a claim is withheld as a whole when one of its entries cannot be read', async (t) => {
  const api = await startApi(t, (_req, res, { pathname }) =>
    pathname === '/orgs' ? sendJson(res, [{ login: 'acme' }]) : sendJson(res, { message: 'Not Found' }, 404),
  )

  const { reading } = await read(t, [
    { url: `${api.origin}/orgs`, select: '[].login' },
    { url: `${api.origin}/teams`, select: '[].slug' },
  ])

  assert.deepEqual(reading, { kind: 'unusable', isRejected: false })
})

test('a single value stays a single value', async (t) => {
  const api = await startApi(t, (_req, res) => sendJson(res, { department: { name: 'Sales' } }))

  const { reading } = await read(t, [{ url: `${api.origin}/me`, select: 'department.name', as: 'department' }])

  assert.deepEqual(reading, { kind: 'value', value: 'Sales' })
})

for (const [what, emails, value] of [
  [
    'is verified',
    [
      ['old@example.com', false, true],
      ['jane@example.com', true, true],
    ],
    'jane@example.com',
  ],
  [
    'is not verified',
    [
      ['jane@example.com', true, false],
      ['old@example.com', false, true],
    ],
    undefined,
  ],
] as const)
  test(`the primary e-mail address of GitHub is one text, or absent: it ${what}`, async (t) => {
    const list = emails.map(([email, primary, verified]) => ({ email, primary, verified, visibility: null }))
    const api = await startApi(t, linked(list, 1))

    const select = '[primary=true,verified=true].email'
    const { reading } = await read(t, [
      { url: `${api.origin}/user/emails`, select, as: 'email', pages: { next: 'link' } },
    ])

    assert.deepEqual(reading, { kind: 'value', value })
  })

test('of several elements with the members of which one may have them, none counts', async (t) => {
  const both = ['a@example.com', 'b@example.com'].map((email) => ({ email, primary: true }))
  const api = await startApi(t, (req, res, url) => linked(both, url.pathname === '/one' ? 2 : 1)(req, res, url))

  for (const path of ['/one', '/two']) {
    const source = { url: `${api.origin}${path}`, select: '[primary=true].email', pages: { next: 'link' } }
    const { reading, warnings } = await read(t, [source])
    assert.equal(reading?.kind, 'unusable')
    assert.match(String(warnings[0]?.['reason']), /several/)
  }
})

const unusable: ApiReading = { kind: 'unusable', isRejected: false }
const away: ApiReading = { kind: 'unavailable', retryAfterMs: undefined }
const json = { 'content-type': 'application/json' }
/** A date, some seconds after a time in the past. */
const at = (seconds: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, seconds)).toUTCString()
const limit = (name: string, seconds: number) => ({
  [`${name}-remaining`]: '0',
  [`${name}-reset`]: String(Date.UTC(2026, 0, 1) / 1000 + seconds),
})
type Respond = Parameters<typeof startApi>[1]

for (const [what, respond, expected, why] of [
  [
    'a page of another person',
    (_req, res) => sendJson(res, { sub: 'samir', groups: ['a'] }),
    unusable,
    /another person/,
  ],
  ['a web page', (_req, res) => res.writeHead(200, { 'content-type': 'text/html' }).end('<p>'), unusable, /not JSON/],
  ['JSON that breaks off', (_req, res) => res.writeHead(200, json).end('{"groups":["staff'), unusable, /incomplete/],
  [
    'a connection that breaks off',
    (_req, res) => res.writeHead(200, { ...json, 'content-length': 90 }).end('{'),
    away,
    /./,
  ],
  ['ten megabytes', (_req, res) => sendJson(res, { groups: ['x'.repeat(1e7)] }), unusable, /MAX_SIZE/],
  ['nothing at the path', (_req, res) => sendJson(res, { error: 'no' }), unusable, /no value at groups\[\]/],
  ['text at the path of a list', (_req, res) => sendJson(res, { groups: 'staff' }), unusable, /no value at groups/],
  ['objects as values', (_req, res) => sendJson(res, { groups: [{ id: 'staff' }] }), unusable, /no text, number/],
  [
    'an integer that is not exact',
    (_req, res) => res.writeHead(200, json).end('{"groups":[9007199254740993]}'),
    unusable,
    /number/,
  ],
  [
    '2,001 values',
    (_req, res) => sendJson(res, { groups: Array.from({ length: 2001 }, (_, i) => i) }),
    unusable,
    /2000 values/,
  ],
  ['very long values', (_req, res) => sendJson(res, { groups: ['x'.repeat(100_001)] }), unusable, /characters/],
  ['a redirect', (_req, res) => res.writeHead(302, { location: '/elsewhere' }).end(), unusable, /status 302/],
  ['401', (_req, res) => res.writeHead(401).end(), { kind: 'unusable', isRejected: true }, /status 401/],
  ['403', (_req, res) => res.writeHead(403).end(), unusable, /status 403/],
  ['500', (_req, res) => res.writeHead(500).end(), away, /status 500/],
  ['nothing in time', () => {}, away, /no response within/],
  [
    '503 until a date',
    (_req, res) => res.writeHead(503, { date: at(0), 'retry-after': at(120) }).end(),
    { kind: 'unavailable', retryAfterMs: 120_000 },
    /503/,
  ],
  [
    '403 of GitHub, until more is allowed',
    (_req, res) => res.writeHead(403, { date: at(0), ...limit('x-ratelimit', 300) }).end(),
    { kind: 'unavailable', retryAfterMs: 300_000 },
    /403/,
  ],
  [
    '429 of Okta, until more is allowed in an hour',
    (_req, res) => res.writeHead(429, { date: at(0), ...limit('x-rate-limit', 3600) }).end(),
    { kind: 'unavailable', retryAfterMs: 600_000 },
    /429/,
  ],
  [
    '403 of GitHub, for another reason',
    (_req, res) =>
      res.writeHead(403, { date: at(0), ...limit('x-ratelimit', 300), 'x-ratelimit-remaining': '9' }).end(),
    unusable,
    /403/,
  ],
  [
    '429',
    (_req, res) => res.writeHead(429, { 'retry-after': '90' }).end(),
    { kind: 'unavailable', retryAfterMs: 90_000 },
    /429/,
  ],
  [
    '503',
    (_req, res) => res.writeHead(503, { 'retry-after': '5' }).end(),
    { kind: 'unavailable', retryAfterMs: 5_000 },
    /503/,
  ],
  [
    '403 of a client that has sent too much',
    (_req, res) => res.writeHead(403, { 'retry-after': '60' }).end(),
    { kind: 'unavailable', retryAfterMs: 60_000 },
    /403/,
  ],
  [
    'a further page, though there should be one',
    (_req, res) => sendJson(res, { groups: [], nextPageToken: 'a' }),
    unusable,
    /further pages/,
  ],
] satisfies readonly (readonly [string, Respond, ApiReading, RegExp])[] as readonly (readonly [
  string,
  Respond,
  ApiReading,
  RegExp,
])[])
  test(`an API that responds with ${what} gives no claim, and the log says why`, async (t) => {
    const api = await startApi(t, respond)

    const source = { url: `${api.origin}/groups`, select: 'groups[]' }
    const timeoutMs = what === 'nothing in time' ? 500 : undefined
    const { reading, warnings } = await read(t, [source], undefined, timeoutMs)

    assert.deepEqual(reading, expected)
    assert.equal(warnings.length, 1)
    assert.match(String(warnings[0]?.['reason']), why)
    assert.deepEqual([warnings[0]?.['claim'], warnings[0]?.['url']], ['groups', `${api.origin}/groups`])
    assert.doesNotMatch(JSON.stringify(warnings), /at-1|staff/)
  })

for (const [what, next, why] of [
  ['itself', (api: ApiServer) => `${api.origin}/groups`, /itself or an earlier one/],
  ['another origin', () => 'https://evil.example/groups', /another origin/],
  ['another port', (api: ApiServer) => `${api.origin.slice(0, -1)}/groups`, /another origin/],
  ['no address', () => 'http://[', /another origin/],
] as const)
  test(`a next page that is ${what} is not read`, async (t) => {
    const api = await startApi(t, (_req, res) => sendJson(res, { value: [{ id: 'a' }], '@odata.nextLink': next(api) }))

    const { reading, warnings } = await read(t, [
      { url: `${api.origin}/groups`, select: 'value[].id', pages: nextLink },
    ])

    assert.deepEqual(reading, unusable)
    assert.match(String(warnings[0]?.['reason']), why)
    assert.equal(api.requests.length, 1)
  })

test('pages without an end are read up to a limit', async (t) => {
  let page = 0
  const api = await startApi(t, (_req, res) => sendJson(res, { value: [], nextPageToken: String((page += 1)) }))

  const { reading, warnings } = await read(t, [{ url: `${api.origin}/groups`, select: 'value[]', pages: token }])

  assert.deepEqual(reading, unusable)
  assert.match(String(warnings[0]?.['reason']), /more than 50 pages/)
  assert.equal(api.requests.length, 50)
})

for (const [what, claims] of [
  ['is absent', {}],
  ['is empty', { login: '' }],
  ['is a list', { login: ['jane'] }],
  ['ends a text of a query', { login: "x' || true || '" }],
  ['leads to another address', { login: '..' }],
  ['leads to another address where dots and spaces are trimmed', { login: '. .' }],
  ['leads to another address of a server that decodes a path first', { login: '../../user' }],
  ['leads to another address of a server that decodes a path twice', { login: '..%2f..%2fuser' }],
  ['has several segments', { login: 'acme/jane' }],
  ['has a query', { login: 'jane?x' }],
  ['has parameters of a segment', { login: 'jane;x' }],
] satisfies readonly (readonly [string, Claims])[])
  test(`no request is sent when the claim in its address ${what}`, async (t) => {
    const api = await startApi(t, linked([]))

    const { reading } = await read(t, [{ url: `${api.origin}/users/{login}/groups`, select: '[]' }], claims)

    assert.deepEqual(reading, unusable)
    assert.deepEqual(api.requests, [])
  })

test('a claim in an address cannot change its path or its query', async (t) => {
  const api = await startApi(t, linked([]))

  const claims = { login: 'auth0|Jäne&x=1@example.com', team: 'a/../b?c&d#e%2e' }
  await read(t, [{ url: `${api.origin}/users/{login}?a={team}`, select: '[]' }], claims)

  assert.deepEqual(
    api.requests.map(({ url }) => url),
    ['/users/auth0%7CJ%C3%A4ne%26x%3D1%40example.com?a=a%2F..%2Fb%3Fc%26d%23e%252e'],
  )
})

test('an API gets a token of the client itself, which is kept, and replaced once after a 401', async (t) => {
  const api = await startApi(t, (req, res, url) => {
    if (req.headers.authorization === 'Bearer own-1' && api.requests.length > 2) res.writeHead(401).end()
    else linked([{ id: 'staff' }])(req, res, url)
  })
  const own = { token: 'client_credentials', scopes: ['groups'] } as const
  const provider = await startSigningProvider(t, {
    claimsFrom: claimsFrom({ url: `${api.origin}/groups`, select: '[].id', ...own }),
  })
  let issued = 0
  provider.respond(paths.token, (_req, res) => sendJson(res, { ...bearer(), access_token: `own-${(issued += 1)}` }))
  const client = clientOf(t, provider)

  const subject = { sub: 'jane', access_token: 'at-1', claims: {} }
  for (let time = 0; time < 3; time += 1)
    assert.deepEqual(
      [...(await client.apis.read(provider.config.claimsFrom, subject)).values()],
      [{ kind: 'value', value: ['staff'] }],
    )

  const tokens = api.requests.map(({ headers }) => headers.authorization)
  assert.deepEqual(tokens, ['Bearer own-1', 'Bearer own-1', 'Bearer own-1', 'Bearer own-2'])
  assert.equal(provider.lastTokenRequest?.form.get('scope'), 'groups')
})
