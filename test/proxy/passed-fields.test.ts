import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RequestFields, upstreamHeaders } from '../../src/proxy/passed-fields.ts'
import { isGatewayCookie, linesNamed } from './support.ts'

const input = {
  fields: new RequestFields(new Set(['x-remote-user', 'x-email']), false),
  isWithheldCookie: isGatewayCookie,
  keptCookies: undefined,
  host: 'orders.example.com',
  forwarded: {
    clientAddress: '192.0.2.7',
    proto: 'https',
    host: 'orders.example.com',
    forwardedFor: '192.0.2.7',
  },
  requestId: 'r-1',
  loopMarker: 'marker',
  trace: undefined,
} as const

/** How an upstream gets requests. The same fields are withheld from all of them. */
const protocols = {
  'HTTP/1.1': input,
  'HTTP/2': { ...input, fields: new RequestFields(new Set(['x-remote-user', 'x-email']), false, true) },
  'HTTP/1.1 in a trace': { ...input, fields: new RequestFields(new Set(['x-remote-user', 'x-email']), true) },
} as const

/** The header fields for the upstream, including the identity. */
const sent = (...received: string[]): string[] => [...upstreamHeaders(received, input), 'X-Remote-User', 'jane']

for (const name of [
  'X-Remote-User',
  'x-REMOTE-user',
  'X_Remote_User',
  'X-Remote_User',
  'X.Remote.User',
  'X--Remote-User',
  '-X-Remote-User-',
  'X-Email',
  'x_email',
]) {
  for (const [protocol, input] of Object.entries(protocols))
    test(`A forged "${name}" does not arrive over ${protocol}`, () => {
      const lines = [...upstreamHeaders([name, 'admin', name, 'root'], input), 'X-Remote-User', 'jane']

      assert.equal(lines.includes('admin'), false)
      assert.equal(lines.includes('root'), false)
      assert.deepEqual(linesNamed(lines, 'X-Remote-User'), ['jane'])
    })
}

test('Content-Length is forwarded without leading zeros, because some servers read them as octal', () => {
  for (const [length, expected] of [
    ['010', '10'],
    ['000', '0'],
    ['0', '0'],
    ['10', '10'],
  ] as const)
    assert.deepEqual(linesNamed(sent('Content-Length', length), 'Content-Length'), [expected])
})

test('TE reaches only upstreams that speak HTTP/2, and says only that trailers are welcome', () => {
  const http2 = { ...input, fields: new RequestFields(new Set(), false, true) }

  assert.deepEqual(linesNamed(sent('TE', 'trailers'), 'TE'), [])
  assert.deepEqual(linesNamed(upstreamHeaders(['te', 'gzip, trailers'], http2), 'TE'), ['trailers'])
  assert.deepEqual(linesNamed(upstreamHeaders(['te', 'gzip'], http2), 'TE'), [])
})

test('Connection cannot remove the identity headers', () => {
  for (const value of ['X-Remote-User', 'close, x-remote-USER', 'keep-alive,X-Remote-User,Host,X-Forwarded-For']) {
    const lines = sent('Connection', value, 'X-Remote-User', 'admin')

    assert.deepEqual(linesNamed(lines, 'X-Remote-User'), ['jane'])
    assert.deepEqual(linesNamed(lines, 'X-Forwarded-For'), ['192.0.2.7'])
    assert.deepEqual(linesNamed(lines, 'Host'), ['orders.example.com'])
  }
})

test('Hop-by-hop fields and fields named in Connection are not forwarded, in any order', () => {
  const lines = sent(
    'X-Hop', '1',
    'Connection', 'X-Hop',
    'connection', 'x-other-hop, keep-alive',
    'X-Other-Hop', '2',
    'Keep-Alive', 'timeout=5',
    'Proxy-Connection', 'keep-alive',
    'Proxy-Authorization', 'Basic eA==',
    'TE', 'trailers',
    'Trailer', 'X-Checksum',
    'Transfer-Encoding', 'chunked',
    'Upgrade', 'h2c',
    'HTTP2-Settings', 'AAA',
    'Expect', '100-continue',
    'Accept', '*/*',
  ) // prettier-ignore

  assert.deepEqual(lines, [
    'Host', 'orders.example.com',
    'Accept', '*/*',
    'X-Forwarded-For', '192.0.2.7',
    'X-Forwarded-Proto', 'https',
    'X-Forwarded-Host', 'orders.example.com',
    'X-Request-Id',
    'r-1',
    'Gatehouse-Loop',
    'marker',
    'X-Remote-User', 'jane',
  ]) // prettier-ignore
})

test('Only the gateway sets the forwarding headers', () => {
  for (const name of [
    'Forwarded',
    'X-Forwarded-For',
    'X-Forwarded-Host',
    'X-Forwarded-Proto',
    'X-Forwarded-Port',
    'X-Forwarded-Prefix',
    'X-Forwarded-User',
    'X-Real-IP',
    'X-Original-URL',
    'X-Original-Host',
    'X-Rewrite-URL',
    'Host',
  ])
    for (const [protocol, input] of Object.entries(protocols))
      assert.equal(upstreamHeaders([name, 'evil'], input).includes('evil'), false, `${name} over ${protocol}`)
})

test('Fields of the same name stay separate, in order and unchanged', () => {
  const lines = sent('X-Tag', 'b', 'Accept', 'text/html', 'x-tag', 'a, \xe4', 'X-Tag', '')

  assert.deepEqual(linesNamed(lines, 'X-Tag'), ['b', 'a, \xe4', ''])
})

test('Content-Length is forwarded exactly once', () => {
  assert.deepEqual(linesNamed(sent('Content-Length', '5', 'content-length', '5'), 'content-length'), ['5'])
})

test('The cookies of the gateway are not forwarded, other cookies arrive unchanged', () => {
  for (const [cookie, expected] of [
    ['__Host-gatehouse=secret', []],
    ['a=1; __Host-gatehouse=secret; b="2"', ['a=1; b="2"']],
    ['a=1;  b=2;c', ['a=1;  b=2;c']],
    ['__Host-gatehouse-x1=attempt; a=1; __Host-gatehouse=secret; __Host-gatehouse=again', ['a=1']],
    ['; = ;;; a=;=b', ['; = ;;; a=;=b']],
    ['__Host-gatehouse', []],
  ] as const) {
    const lines = sent('Cookie', cookie)
    assert.deepEqual(linesNamed(lines, 'Cookie'), expected)
    assert.equal(lines.join().includes('secret'), false)
  }
})

test('Cookies that the session keeps join those of the client, once', () => {
  const cookiesFor = (keptCookies: string | undefined, ...received: string[]) =>
    linesNamed(upstreamHeaders(received, { ...input, keptCookies }), 'Cookie')

  assert.deepEqual(cookiesFor('k=1'), ['k=1'])
  assert.deepEqual(cookiesFor('k=1', 'Cookie', 'a=1'), ['a=1; k=1'])
  assert.deepEqual(cookiesFor('k=1', 'Cookie', '__Host-gatehouse=secret'), ['k=1'])
  assert.deepEqual(cookiesFor('k=1', 'Cookie', 'a=1', 'Cookie', 'b=2'), ['a=1; k=1', 'b=2'])
  assert.deepEqual(cookiesFor(undefined, 'Cookie', 'a=1'), ['a=1'])
})

test('Authorization is withheld only where the gateway has used it', () => {
  const sentWith = (withholdsAuthorization: boolean) =>
    linesNamed(
      upstreamHeaders(['authorization', 'Bearer x', 'X-A', '1'], { ...input, withholdsAuthorization }),
      'Authorization',
    )

  assert.deepEqual(sentWith(true), [])
  assert.deepEqual(sentWith(false), ['Bearer x'])
})
