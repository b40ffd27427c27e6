import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Caching } from '../../src/gate/admission.ts'
import { Addresses } from '../../src/proxy/addresses.ts'
import { responseChanges, responseHeaders, responseTrailers } from '../../src/proxy/client-response.ts'
import { isGatewayCookie, linesNamed } from './support.ts'

const input = {
  isGatewayCookie,
  caching: 'anybody',
  addresses: new Addresses(
    {
      url: new URL('http://app.internal:3000/base/'),
      path: '/',
      stripPath: false,
      alsoKnownAs: [],
      hostHeader: 'client',
      originHeader: 'client',
      setCookie: { domain: undefined, path: undefined, secure: false, sameSite: undefined },
      externalUrl: new URL('https://orders.example.com'),
      hosts: [],
    },
    '/.gatehouse/',
  ),
  status: 200,
} as const

test('Hop-by-hop fields and fields named in Connection are not forwarded', () => {
  const lines = responseHeaders(
    ['X-Foo', '1', 'Connection', 'close, X-Foo', 'Keep-Alive', 'timeout=5', 'Trailer', 'X-T', 'Date', 'now', 'Server', 's'],
    input,
  ) // prettier-ignore

  assert.deepEqual(lines, ['Date', 'now', 'Server', 's'])
})

for (const line of [
  '__Host-gatehouse=evil; Path=/',
  ' __Host-gatehouse =evil',
  '=__Host-gatehouse=evil',
  '__Host-gatehouse',
  '__Host-gatehouse-attempt=evil',
]) {
  test(`An upstream cannot set a cookie of the gateway: "${line}"`, () => {
    const lines = responseHeaders(['Set-Cookie', 'a=1', 'Set-Cookie', line, 'Set-Cookie', 'b=2'], input)

    assert.deepEqual(lines, ['Set-Cookie', 'a=1', 'Set-Cookie', 'b=2'])
  })
}

for (const [received, expected] of [
  ['http://app.internal:3000/base/orders?a=b#c', '/orders?a=b#c'],
  ['HTTP://App.Internal:3000/base/', '/'],
  ['http://app.internal:3000/base', '/'],
  ['http://app.internal:3000/base?a', '/?a'],
  // The host never changes to an unintended one.
  ['http://app.internal:3000/base//evil.example.com/', '/evil.example.com/'],
  ['http://app.internal:3000/base/\\evil.example.com/', '/evil.example.com/'],
  ['http://app.internal:3000/baseless', 'http://app.internal:3000/baseless'],
  ['http://app.internal:3001/base/', 'http://app.internal:3001/base/'],
  ['https://app.internal:3000/base/', 'https://app.internal:3000/base/'],
  ['http://app.internal:3000@evil.example.com/base/', 'http://app.internal:3000@evil.example.com/base/'],
  ['http://app.internal:3000.evil.example.com/base/', 'http://app.internal:3000.evil.example.com/base/'],
  ['https://orders.example.com/base/', 'https://orders.example.com/'],
  ['/base/orders', '/orders'],
  ['orders', 'orders'],
  ['http://', 'http://'],
] as const)
  test(`The address of the upstream is not revealed: Location: ${received}`, () => {
    for (const name of ['Location', 'content-location'])
      assert.deepEqual(responseHeaders([name, received], input), [name, expected])
  })

const fields = ['Cache-Control', 'Vary', 'Expires', 'CDN-Cache-Control', 'Surrogate-Control', 'X-Accel-Expires']

function cachingOf(caching: Caching, ...received: string[]): Record<string, string[]> {
  const lines = responseHeaders([...received], { ...input, caching })
  const entries = fields.map((name) => [name, linesNamed(lines, name)] as const)
  return Object.fromEntries(entries.filter(([, values]) => values.length > 0))
}

for (const [received, expected] of [
  [[], ['private']],
  [['public, max-age=60'], ['max-age=60, private']],
  [['max-age=60'], ['max-age=60, private']],
  [['Public'], ['private']],
  [['s-maxage=600, max-age=60, must-revalidate'], ['max-age=60, must-revalidate, private']],
  [['public', 'max-age=60'], ['max-age=60, private']],
  [['max-age=60', 'private'], ['max-age=60, private']],
  [['public, private'], ['private']],
  [['no-cache="private, no-store"'], ['no-cache="private, no-store", private']],
  [['private="Set-Cookie", max-age=60'], ['max-age=60, private']],
  [['no-store'], ['no-store']],
  [['No-Store, max-age=0'], ['No-Store, max-age=0']],
  [['private, max-age=0'], ['private, max-age=0']],
  [['s-maxage="1", , ;'], [';, private']],
] as const)
  test(`No shared cache stores a personal response: ${received.join(' and ') || 'no Cache-Control'}`, () => {
    const lines = received.flatMap((value) => ['cache-control', value])

    assert.deepEqual(cachingOf('private', ...lines)['Cache-Control'], expected)
    // The second time, the value comes from the cache.
    assert.deepEqual(cachingOf('private', ...lines)['Cache-Control'], expected)
  })

const forCaches = [
  ...['Cache-Control', 'public, max-age=60', 'CDN-Cache-Control', 'max-age=60', 'Cloudflare-CDN-Cache-Control', 'max-age=1'],
  ...['Surrogate-Control', 'max-age=60', 'X-Accel-Expires', '60', 'Expires', 'Thu, 01 Jan 2099 00:00:00 GMT'],
] // prettier-ignore

test('Directives for shared caches are removed from personal responses', () => {
  assert.deepEqual(cachingOf('private', ...forCaches), {
    'Cache-Control': ['max-age=60, private'],
    Vary: ['Cookie'],
    Expires: ['Thu, 01 Jan 2099 00:00:00 GMT'],
  })
  assert.deepEqual(cachingOf('no_store', ...forCaches), { 'Cache-Control': ['no-store'] })
})

test('Public responses are cached as the application says', () => {
  const { Vary: _, ...expected } = cachingOf('varies', ...forCaches)

  assert.deepEqual(cachingOf('anybody', ...forCaches), expected)
  assert.deepEqual(cachingOf('upstream', ...forCaches), expected)
  assert.deepEqual(expected['Cache-Control'], ['public, max-age=60'])
  assert.deepEqual(cachingOf('upstream'), { 'Cache-Control': ['private'] })
  assert.deepEqual(cachingOf('anybody'), {})
})

test('Vary is added once when the response depends on the signed-in person', () => {
  for (const caching of ['private', 'varies'] as const) {
    assert.deepEqual(cachingOf(caching)['Vary'], ['Cookie'])
    assert.deepEqual(cachingOf(caching, 'vary', 'Accept-Encoding')['Vary'], ['Accept-Encoding', 'Cookie'])
    assert.deepEqual(cachingOf(caching, 'Vary', 'accept, COOKIE')['Vary'], ['accept, COOKIE'])
    assert.deepEqual(cachingOf(caching, 'Vary', '*')['Vary'], ['*'])
  }
})

test('The first of two Date fields is forwarded', () => {
  const received = ['Date', 'Thu, 01 Jan 2026 00:00:00 GMT', 'X-A', '1', 'date', 'Fri, 02 Jan 2026 00:00:00 GMT']

  const lines = responseHeaders(received, { ...input, caching: 'anybody' })

  assert.deepEqual(lines, ['Date', 'Thu, 01 Jan 2026 00:00:00 GMT', 'X-A', '1'])
})

test('A response with a transfer coding that cannot be forwarded is rejected', () => {
  assert.throws(() => responseHeaders(['Transfer-Encoding', 'gzip, chunked'], input), {
    code: 'ERR_UPSTREAM_RESPONSE',
  })
  assert.deepEqual(responseHeaders(['Transfer-Encoding', 'Chunked'], input), [])
})

test('A 204 has no Content-Length', () => {
  assert.deepEqual(responseHeaders(['Content-Length', '0'], { ...input, status: 204 }), [])
})

test('Trailers contain no field for framing, routing or identity', () => {
  const trailers = responseTrailers(
    ['X-Checksum', '1', 'Content-Length', '5', 'Set-Cookie', 'a=1', 'X-Remote-User', 'admin', 'X-Checksum', '2'],
    new Set(['x-remote-user']),
  )

  assert.deepEqual(trailers, [
    ['X-Checksum', '1'],
    ['X-Checksum', '2'],
  ])
})

test('Header fields are set and removed as configured', () => {
  const changes = responseChanges({ set: { 'X-Frame-Options': 'DENY' }, remove: ['server', 'X-Gone'], defaults: [] })

  const lines = responseHeaders(['Server', 's', 'X-A', '1', 'x-frame-options', 'ALLOWALL', 'X-Gone', '2'], {
    ...input,
    changes,
  })

  assert.deepEqual(lines, ['X-A', '1', 'X-Frame-Options', 'DENY'])
})

test('Fields with a default are added only where the application does not set them', () => {
  const policy = {
    name: 'Content-Security-Policy',
    value: "frame-ancestors 'self'",
    unless: 'frame-ancestors' as const,
  }
  const defaults = [{ name: 'Referrer-Policy', value: 'same-origin' }, policy]
  const changes = responseChanges({ set: {}, remove: [], defaults })
  const fieldsFor = (...received: string[]) => responseHeaders(received, { ...input, changes })
  const added = ['Content-Security-Policy', "frame-ancestors 'self'"]

  assert.deepEqual(fieldsFor(), ['Referrer-Policy', 'same-origin', ...added])
  assert.deepEqual(fieldsFor('referrer-policy', 'origin'), ['referrer-policy', 'origin', ...added])
  const own = ['content-security-policy', "default-src 'self'", 'Referrer-Policy', 'origin']
  assert.deepEqual(fieldsFor(...own), [...own, ...added])
  const framed = ['Content-Security-Policy', "default-src 'self'; Frame-Ancestors *", 'Referrer-Policy', 'origin']
  assert.deepEqual(fieldsFor(...framed), framed)
})

test('A cookie of the gateway cannot be set when the attributes of cookies are changed', () => {
  const lines = responseHeaders(
    ['Set-Cookie', '__Host-gatehouse=evil; Domain=x', 'Set-Cookie', 'b=2; Path=/base'],
    input,
  )

  assert.deepEqual(lines, ['Set-Cookie', 'b=2; Path=/'])
})

test('A trailer cannot be a field that recipients need before the content', () => {
  for (const name of [
    ...['Content-Length', 'Content-Encoding', 'Content-Type', 'Content-Range', 'Transfer-Encoding', 'Connection'],
    ...['Host', 'Expect', 'Location', 'Cache-Control', 'Vary', 'Authorization', 'WWW-Authenticate'],
    ...['Cookie', 'Set-Cookie', 'X-Remote-User'],
  ])
    assert.deepEqual(responseTrailers([name, 'x', 'X-Sum', '1'], new Set(['x-remote-user'])), [['X-Sum', '1']], name)
})

test('A default is for responses without the field, whatever values other fields have', () => {
  const defaults = [
    { name: 'Content-Security-Policy', value: "frame-ancestors 'self'", unless: 'frame-ancestors' },
  ] as const
  const changes = responseChanges({ set: {}, remove: [], defaults: [...defaults, { name: 'X-Own', value: 'ours' }] })

  const fields = responseHeaders(['X-Note', "frame-ancestors 'none'", 'X-Other', 'ours'], { ...input, changes })

  assert.deepEqual(linesNamed(fields, 'Content-Security-Policy'), ["frame-ancestors 'self'"])
  assert.deepEqual(linesNamed(fields, 'X-Own'), ['ours'])
})
