import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type FramedRequest, requireForwardable, requireUnambiguous } from '../../src/http/request-facts.ts'

const limits = { headerCount: 6 }

/**
 * A request with these fields: the gateway has the first value of each in `headers`, as Node.js.
 */
function framed(lines: readonly (readonly [string, string])[], more: Partial<FramedRequest> = {}): FramedRequest {
  const headers: Record<string, string> = {}
  for (const [name, value] of lines) headers[name.toLowerCase()] ??= value
  return { httpVersion: '1.1', rawHeaders: lines.flat(), headers, url: '/', ...more }
}

const host = ['Host', 'a.example'] as const
const isRefused = (request: FramedRequest) => {
  try {
    requireUnambiguous(request, limits)
    return false
  } catch {
    return true
  }
}

for (const [what, request] of Object.entries({
  'a Host': framed([host]),
  'no Host in HTTP/1.0': framed([], { httpVersion: '1.0' }),
  'a length': framed([host, ['Content-Length', '5']]),
  'the longest length': framed([host, ['content-length', '9'.repeat(15)]]),
  'a length, and fields whose names are as long': framed([host, ['Content-Length', '5'], ['X-Fourteen-Cha', '1']]),
  'chunked content': framed([host, ['TRANSFER-ENCODING', 'Chunked']]),
  'the absolute form': framed([host], { url: 'http://A.example/' }),
  'as many fields as may be': framed([host, ...Array.from({ length: 5 }, () => ['X', '1'] as const)]),
  'HTTP/2': framed([host], { httpVersion: '2.0', scheme: 'https' }),
  'CONNECT of HTTP/2': framed([host], { httpVersion: '2.0', scheme: '' }),
}))
  test(`A request is clear: ${what}`, () => {
    assert.equal(isRefused(request), false)
  })

for (const [what, request] of Object.entries({
  'two Hosts': framed([host, ['HOST', 'a.example']]),
  'no Host': framed([]),
  'a malformed Host': framed([['Host', 'a.example/x']]),
  'two lengths': framed([host, ['Content-Length', '5'], ['content-length', '5']]),
  'a length and chunked content': framed([host, ['Content-Length', '5'], ['Transfer-Encoding', 'chunked']]),
  'chunked content twice': framed([host, ['Transfer-Encoding', 'chunked'], ['transfer-encoding', 'chunked']]),
  'a length of 16 digits': framed([host, ['Content-Length', '1'.padEnd(16, '0')]]),
  'a length that is no number': framed([host, ['Content-Length', '+5']]),
  'another coding': framed([host, ['Transfer-Encoding', 'gzip, chunked']]),
  'chunked content in HTTP/1.0': framed([host, ['Transfer-Encoding', 'chunked']], { httpVersion: '1.0' }),
  'another authority in the absolute form': framed([host], { url: 'http://b.example/' }),
  'too many fields': framed([host, ...Array.from({ length: 6 }, () => ['X', '1'] as const)]),
  'HTTP/2.0 in a request line': framed([host], { httpVersion: '2.0' }),
  'HTTP/1.2': framed([host], { httpVersion: '1.2' }),
  'another scheme': framed([host], { httpVersion: '2.0', scheme: 'ftp' }),
}))
  test(`A request that can be read in two ways is refused: ${what}`, () => {
    assert.equal(isRefused(request), true)
  })

test('Neither TRACE nor CONNECT is forwarded', () => {
  for (const method of ['TRACE', 'CONNECT'])
    assert.throws(() => requireForwardable(method), { code: 'ERR_METHOD_UNKNOWN' })
  for (const method of ['GET', 'POST', 'OPTIONS', 'FROBNICATE']) requireForwardable(method)
})
