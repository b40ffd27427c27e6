import assert from 'node:assert/strict'
import { test } from 'node:test'
import { responseHeaders, responseTrailers } from '../../src/proxy/response-headers.ts'
import { isGatewayCookie, linesNamed } from './support.ts'

const input = { isGatewayCookie, signedIn: false, status: 200 }
const bytes = (...texts: string[]): Buffer[] => texts.map((text) => Buffer.from(text, 'latin1'))

test('hop-by-hop fields and what Connection names end here', () => {
  const lines = responseHeaders(
    bytes('X-Foo', '1', 'Connection', 'close, X-Foo', 'Keep-Alive', 'timeout=5', 'Trailer', 'X-T', 'Date', 'now', 'Server', 's'),
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
  test(`an upstream cannot set a cookie of the gateway: "${line}"`, () => {
    const lines = responseHeaders(bytes('Set-Cookie', 'a=1', 'Set-Cookie', line, 'Set-Cookie', 'b=2'), input)

    assert.deepEqual(lines, ['Set-Cookie', 'a=1', 'Set-Cookie', 'b=2'])
  })
}

test('an answer about somebody is private unless the upstream says otherwise', () => {
  const of = (...received: string[]) =>
    linesNamed(responseHeaders(bytes(...received), { ...input, signedIn: true }), 'Cache-Control')

  assert.deepEqual(of('ETag', '"1"'), ['private'])
  assert.deepEqual(of('cache-control', 'public, max-age=60'), ['public, max-age=60'])
  assert.equal(responseHeaders(bytes('ETag', '"1"'), input).includes('private'), false)
})

test('a value with CR, LF or NUL is never passed on', () => {
  for (const evil of ['a\rb', 'a\nb', 'a\0b'])
    assert.throws(() => responseHeaders(bytes('X-A', evil), input), { code: 'ERR_UPSTREAM_ANSWER' })
})

test('a transfer coding that would be lost is not passed on', () => {
  assert.throws(() => responseHeaders(bytes('Transfer-Encoding', 'gzip, chunked'), input), {
    code: 'ERR_UPSTREAM_ANSWER',
  })
  assert.deepEqual(responseHeaders(bytes('Transfer-Encoding', 'Chunked'), input), [])
})

test('a 204 says nothing about its length', () => {
  assert.deepEqual(responseHeaders(bytes('Content-Length', '0'), { ...input, status: 204 }), [])
})

test('trailers carry nothing that frames, routes or identifies', () => {
  const trailers = responseTrailers(
    bytes('X-Checksum', '1', 'Content-Length', '5', 'Set-Cookie', 'a=1', 'X-Remote-User', 'admin', 'X-Checksum', '2'),
    new Set(['x-remote-user']),
  )

  assert.deepEqual(trailers, [
    ['X-Checksum', '1'],
    ['X-Checksum', '2'],
  ])
})
