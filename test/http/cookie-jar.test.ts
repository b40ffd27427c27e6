import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cookieField, keepCookies, type KeptCookie, readSetCookie } from '../../src/http/cookie-jar.ts'

const now = Date.UTC(2026, 0, 2, 3, 4, 5)
const scope = { host: 'app.example.com', path: '/wiki/page' }

function jarOf(...lines: readonly string[]): readonly KeptCookie[] {
  return keepCookies(
    [],
    lines.flatMap((line) => readSetCookie(line, scope, now) ?? []),
    now,
  )
}

/** What a request for a path gets from cookies that were set at /wiki/page. */
function sent(lines: readonly string[], path: string, host = scope.host, at = now): string | undefined {
  return cookieField(jarOf(...lines), { host, path }, at)
}

test('A cookie is sent for the folder of the page that set it, and below', () => {
  assert.equal(sent(['a=1'], '/wiki/other'), 'a=1')
  assert.equal(sent(['a=1'], '/wiki'), 'a=1')
  assert.equal(sent(['a=1'], '/wikis'), undefined)
  assert.equal(sent(['a=1'], '/'), undefined)
})

test('Path limits a cookie to a path and everything below it', () => {
  for (const [path, request, isSent] of [
    ['/', '/x', true],
    ['/a', '/a', true],
    ['/a', '/a/b', true],
    ['/a', '/ab', false],
    ['/a/', '/a', false],
    ['/a/', '/a/b', true],
    ['a', '/wiki/x', true],
    ['', '/wiki/x', true],
  ] as const)
    assert.equal(sent([`n=v; Path=${path}`], request), isSent ? 'n=v' : undefined, `${path} for ${request}`)
})

test('Cookies with longer paths come first, then older ones', () => {
  assert.equal(sent(['a=1; Path=/', 'b=2; Path=/wiki', 'c=3; Path=/'], '/wiki/x'), 'b=2; a=1; c=3')
})

test('A cookie without Domain is sent to its own host only', () => {
  assert.equal(sent(['a=1; Path=/'], '/', 'www.app.example.com'), undefined)
  assert.equal(sent(['a=1; Path=/; Domain=.Example.com'], '/', 'other.example.com'), 'a=1')
  assert.equal(sent(['a=1; Path=/; Domain=example.com'], '/', 'badexample.com'), undefined)
})

test('A cookie for another host is ignored', () => {
  for (const domain of ['evil.example', 'x.app.example.com', 'ple.com', 'app.example.com.evil.example'])
    assert.deepEqual(jarOf(`a=1; Domain=${domain}`), [], domain)
  assert.equal(readSetCookie('a=1; Domain=0.0.1', { host: '127.0.0.1', path: '/' }, now), undefined)
})

test('A cookie replaces the one with its name, domain and path, and keeps its place', () => {
  assert.equal(sent(['a=1; Path=/', 'b=2; Path=/', 'a=3; Path=/'], '/'), 'a=3; b=2')
  assert.equal(sent(['a=1; Path=/', 'a=2; Path=/wiki'], '/wiki/x'), 'a=2; a=1')
  assert.equal(sent(['a=1; Path=/', 'a=2; Path=/; Domain=app.example.com'], '/'), 'a=1; a=2')
})

test('An expired cookie deletes the stored one, and only that one', () => {
  for (const expiry of ['Max-Age=0', 'Max-Age=-1', 'Expires=Thu, 01 Jan 1970 00:00:00 GMT', 'expires=01-jan-70 0:0:0'])
    assert.equal(sent(['a=1; Path=/', 'a=2; Path=/wiki', `a=; Path=/; ${expiry}`], '/wiki/x'), 'a=2', expiry)
})

test('A cookie is sent until it expires', () => {
  for (const expiry of [
    'Max-Age=60',
    'Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT',
    'Expires=Fri, 02 Jan 2026 03:05:05 GMT',
    'Expires=Friday, 02-Jan-26 03:05:05 GMT',
    'Expires=Fri Jan  2 03:05:05 2026',
  ]) {
    assert.equal(sent([`a=1; ${expiry}`], '/wiki/', scope.host, now + 59_999), 'a=1', expiry)
    assert.equal(sent([`a=1; ${expiry}`], '/wiki/', scope.host, now + 60_000), undefined, expiry)
  }
})

test('An expiry that cannot be read does not count', () => {
  for (const expiry of [
    'Max-Age=1h',
    'Max-Age=',
    'Expires=soon',
    'Expires=31 Apr 2026 00:00:00',
    'Expires=2 Jan 1600 0:0:0',
  ])
    assert.deepEqual(jarOf(`a=1; ${expiry}`), jarOf('a=1'), expiry)
})

test('A cookie lasts 400 days at most', () => {
  assert.equal(jarOf('a=1; Max-Age=99999999999')[0]?.expires_at, now + 400 * 86_400_000)
})

test('A value is kept byte for byte', () => {
  assert.equal(sent(['a=" x=y, \xe9"; Path=/'], '/'), 'a=" x=y, \xe9"')
  assert.equal(sent(['  a  =  b c  ; Path=/'], '/'), 'a=b c')
  assert.equal(sent(['nameless; Path=/'], '/'), 'nameless')
  assert.equal(sent(['=v; Path=/'], '/'), 'v')
})

test('A value that browsers ignore is ignored', () => {
  for (const text of ['', '=', ';Path=/', 'a=1\x01', 'a=\x7f', `a=${'x'.repeat(4096)}`])
    assert.deepEqual(jarOf(text), [])
})

test('A name that promises attributes needs them', () => {
  for (const text of [
    '__Secure-a=1',
    '__Host-a=1; Secure',
    '__Host-a=1; Secure; Path=/; Domain=example.com',
    '__HOST-a=1; Path=/',
    '=__Host-a=1; Secure; Path=/',
    '__Secure-a',
  ])
    assert.deepEqual(jarOf(text), [], text)
  for (const text of ['__Secure-a=1; Secure', '__Host-a=1; Secure; Path=/']) assert.equal(jarOf(text).length, 1, text)
})

test('A cookie that is set again as it is changes nothing', () => {
  const kept = jarOf('a=1', 'b=2; Max-Age=600')
  const again = (line: string, at: number) => keepCookies(kept, [readSetCookie(line, scope, at) as KeptCookie], at)

  assert.equal(again('a=1', now), kept)
  assert.equal(again('b=2; Max-Age=600', now + 30_000), kept)
  assert.notEqual(again('b=2; Max-Age=600', now + 90_000), kept)
  assert.notEqual(again('a=1; Max-Age=600', now), kept)
  assert.notEqual(again('a=2', now), kept)
  assert.equal(again('c=; Max-Age=0', now), kept)
})
