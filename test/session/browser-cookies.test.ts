import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseNamePattern } from '../../src/core/patterns.ts'
import type { KeptCookie } from '../../src/http/cookie-jar.ts'
import { browserCookiesAt, foreignCookies } from '../../src/session/cookies/application-cookies.ts'
import { SessionCookie } from '../../src/session/cookies/session-cookie.ts'
import type { SessionRecord } from '../../src/session/record/record.ts'

const patterns = ['JSESSIONID', 'wordpress_*'].map(parseNamePattern)
const at = (name: string, path = '/', domain = 'a.example.com', hostOnly = true): KeptCookie => ({
  ...{ name, value: '', domain, path },
  ...(hostOnly && { hostOnly }),
})
const record = (...browser_cookies: KeptCookie[]) => ({ browser_cookies }) as unknown as SessionRecord
const scope = { host: 'a.example.com', path: '/admin/x' }

for (const [why, header, own, foreign] of [
  ['no cookie', undefined, [], []],
  ['a cookie of another name', 'theme=dark', [], []],
  ['a cookie that the session does not have', 'JSESSIONID=1', [], ['JSESSIONID']],
  ['its own cookie', 'JSESSIONID=1', [at('JSESSIONID')], []],
  ['its own cookie with a domain', 'JSESSIONID=1', [at('JSESSIONID', '/', 'example.com', false)], []],
  ['a cookie that the session has for another path', 'JSESSIONID=1', [at('JSESSIONID', '/shop')], ['JSESSIONID']],
  [
    'a cookie that the session has for another host',
    'JSESSIONID=1',
    [at('JSESSIONID', '/', 'b.example.com')],
    ['JSESSIONID'],
  ],
  ['two cookies of which the session has one', 'JSESSIONID=1; JSESSIONID=2', [at('JSESSIONID')], ['JSESSIONID']],
  ['two own cookies', 'JSESSIONID=1; JSESSIONID=2', [at('JSESSIONID'), at('JSESSIONID', '/admin')], []],
  [
    'names that match a pattern',
    'wordpress_a=1; wordpress_b=2; WordPress_c=3',
    [at('wordpress_a')],
    ['wordpress_b', 'WordPress_c'],
  ],
] as const)
  test(`Foreign are only cookies of other sessions: ${why}`, () => {
    assert.deepEqual(foreignCookies(header, record(...own), patterns, scope), foreign)
  })

test('A session of an earlier version has no foreign cookies', () => {
  assert.deepEqual(foreignCookies('JSESSIONID=1', {} as SessionRecord, patterns, scope), [])
})

test('A cookie expires where the application has set it', () => {
  const cookie = new SessionCookie({ name: 'gatehouse', secure: false, sameSite: 'lax' })
  const cookies = [
    at('a', '/x'),
    at('b', '/', 'example.com', false),
    at('c', '/', 'b.example.com'),
    at('d', '/', 'example.org', false),
  ]

  assert.deepEqual(
    cookie
      .expireAll('gatehouse=1', [], { cookies: browserCookiesAt(record(...cookies), 'a.example.com') })
      .map((text) => text.replace(/; HttpOnly.*$/, '')),
    ['gatehouse=; Path=/', 'a=; Path=/x', 'b=; Path=/; Domain=example.com'],
  )
})

test('A foreign cookie expires wherever it may be, and the own ones stay', () => {
  const cookie = new SessionCookie({ name: 'gatehouse', secure: false, sameSite: 'lax' })
  const applicationCookies = [{ names: parseNamePattern('sid'), paths: [], domains: ['example.com'] }]
  const expired = cookie.expiry
    .wherever(['sid'], '/a/b', { applicationCookies, kept: [at('sid'), at('other', '/a')] })
    .map((text) => text.replace(/^sid=; (.*?); HttpOnly.*$/, '$1'))

  assert.deepEqual(expired, [
    'Path=/; Domain=example.com',
    ...['/a', '/a/', '/a/b'].flatMap((path) => [`Path=${path}`, `Path=${path}; Domain=example.com`]),
  ])
})
