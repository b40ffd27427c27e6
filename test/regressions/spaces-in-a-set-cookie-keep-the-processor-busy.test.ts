import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readSetCookie } from '../../src/http/cookie-jar.ts'
import { Addresses } from '../../src/proxy/addresses.ts'
import { ContentRewriter } from '../../src/proxy/content-rewriter.ts'
import { processorTime } from '../support/processor-time.ts'

// The head of a response may have 64 KiB. With quadratic time, this takes seconds.
const spaces = ' '.repeat(60_000)

function assertShort(run: () => void): void {
  const busy = processorTime()
  run()
  const took = busy()
  assert.ok(took < 1_000, `${took} ms`)
}

const addresses = new Addresses(
  {
    hostHeader: 'client',
    originHeader: 'client',
    url: new URL('http://127.0.0.1:8080/app'),
    path: '/wiki/',
    stripPath: true,
    alsoKnownAs: [],
    setCookie: { domain: undefined, path: undefined, secure: true, sameSite: 'lax' },
    externalUrl: new URL('https://intranet.example.com'),
    hosts: [],
  },
  '/.gatehouse/',
)

test('The gateway reads a Set-Cookie with many spaces in linear time', () => {
  for (const text of [`a=b${spaces}c`, `a${spaces}b=c`, `a=b; Path=/${spaces}x`, `a=b; x${spaces}y; Path=/`])
    assertShort(() => readSetCookie(text, { host: 'intranet.example.com', path: '/' }, 0))
})

test('The gateway changes a Set-Cookie with many spaces in linear time', () => {
  for (const text of [`a=b; x${spaces}y`, `a=b; Path=/app${spaces}x`, `a=b; domain=x${spaces}y; Path=/`])
    assertShort(() => {
      addresses.response('set-cookie', text)
      addresses.ownCookie(text)
    })
})

test('The gateway reads a Content-Type with many spaces in linear time', () => {
  const handler = { onResponse() {} } as unknown as ConstructorParameters<typeof ContentRewriter>[0]
  const rewriter = new ContentRewriter(handler, {
    addresses: addresses.inContent(),
    notice: undefined,
    isHead: true,
    onSkip() {},
  })
  assertShort(() => rewriter.onResponse(200, '', ['Content-Type', `text/html; charset=${spaces}x`]))
})
