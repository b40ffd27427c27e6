import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { plainRequestHead } from '../../src/listener/plain/request-head.ts'
import { collectUpstreamHeaders, RequestFields, upstreamHeaders } from '../../src/proxy/upstream-headers.ts'
import { FieldLines } from '../../src/wire/field-lines.ts'
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
  addresses: { request: (_name: string, value: string) => value },
  trace: undefined,
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
  test(`A forged "${name}" does not arrive`, () => {
    const lines = sent(name, 'admin', name, 'root')

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

/** Lines of a head: usual names, names that the gateway treats in its own way, odd spaces. */
const anyLines = fc.array(
  fc
    .tuple(
      fc.constantFrom('Accept', 'X-A', 'x-remote-user', 'Cookie', 'Content-Length', 'Connection', 'TE', 'Referer'),
      fc.constantFrom(': ', ': ', ': ', ':', ':  ', ':\t'),
      fc.constantFrom('', '1', 'a b', 'keep-alive', 'x-a, close', 'gatehouse=1; b=2', 'caf\xe9'),
      fc.constantFrom('', '', '', ' ', '\t'),
    )
    .map((parts) => parts.join('')),
  { maxLength: 8 },
)

test('The upstream gets the same head whether lines are copied or taken apart', () => {
  const some = { ...input, isWithheldCookie: (name: string) => name === 'gatehouse' }
  let copied = 0
  fc.assert(
    fc.property(anyLines, (lines) => {
      const text = ['GET / HTTP/1.1', 'Host: orders.example.com', ...lines].join('\r\n')
      const head = plainRequestHead(Buffer.from(`${text}\r\n\r\n`, 'latin1'), text.length)
      if (head === undefined) return
      if (head.fieldText !== undefined) copied += 1
      const { rawHeaders, fieldText } = head

      const sentLines = collectUpstreamHeaders(rawHeaders, some, new FieldLines(fieldText))
      assert.equal(sentLines.text, FieldLines.of(upstreamHeaders(rawHeaders, some)).text)
      assert.equal(sentLines.invalid, undefined)
    }),
    { numRuns: 3000 },
  )
  assert.ok(copied > 100, 'many heads are copied')
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
    assert.equal(sent(name, 'evil').includes('evil'), false, name)
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
