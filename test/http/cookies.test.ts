import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseNamePattern } from '../../src/core/patterns.ts'
import { cookieNames, expireCookie, isWithheld, readCookie, setCookie, withoutCookies } from '../../src/http/cookies.ts'
import { processorTime } from '../support/processor-time.ts'
import { searchFor } from '../support/searches.ts'

for (const [header, value] of [
  ['s=1', '1'],
  ['a=b; s=1; c=d', '1'],
  ['a=b;s=1', '1'],
  [' a=b;  s= 1 ', '1'],
  ['s =1', undefined],
  ['s=', ''],
  ['s=a=b==', 'a=b=='],
  ['s="1"', '"1"'],
  ['S=1', undefined],
  ['xs=1; s2=1; s.=1', undefined],
  ['s', undefined],
  ['s; s=1', '1'],
  ['a="x; s=1"', '1"'],
  ['', undefined],
  [undefined, undefined],
] as const)
  test(`The cookie "s" in ${JSON.stringify(header)} is ${JSON.stringify(value)}`, () => {
    assert.equal(readCookie(header, 's'), value)
  })

test('A cookie that is sent twice counts as absent, because either may be forged', () => {
  assert.equal(readCookie('s=1; s=2', 's'), undefined)
  assert.equal(readCookie('s=1; a=b;s=1', 's'), undefined)
})

test('The cookies of the gateway are removed, with or without a value, and the others stay unchanged', () => {
  const drop = (name: string) => name === '__Host-gatehouse'

  assert.equal(withoutCookies('a="x y"; __Host-gatehouse=1; b=c=d', drop), 'a="x y"; b=c=d')
  assert.equal(withoutCookies('__Host-gatehouse=1;  __Host-gatehouse=2;a=é', drop), 'a=é')
  assert.equal(withoutCookies('__Host-gatehouse', drop), undefined)
  assert.equal(withoutCookies(' __Host-gatehouse =1;;', drop), undefined)
  assert.equal(withoutCookies('=x; a', drop), '=x; a')
})

test('Cookie names are found by their prefix', () => {
  assert.deepEqual(cookieNames('gh-tx-1=a; x=gh-tx-; gh-tx-2', 'gh-tx-'), ['gh-tx-1', 'gh-tx-2'])
})

test('A cookie is expired with the attributes with which it was set', () => {
  const cookie = { name: '__Host-gatehouse', secure: true, sameSite: 'lax' } as const

  assert.equal(setCookie(cookie, 'v'), '__Host-gatehouse=v; Path=/; HttpOnly; SameSite=Lax; Secure')
  assert.equal(
    setCookie({ name: 'n', secure: false, sameSite: 'strict' }, 'v', 60),
    'n=v; Path=/; HttpOnly; SameSite=Strict; Max-Age=60',
  )
  assert.equal(expireCookie(cookie), `${setCookie(cookie, '')}; Max-Age=0`)
})

for (const header of [
  '=',
  ';;;',
  'a=;=b',
  ';=;',
  '====',
  's',
  ' ',
  '\t;\t',
  ';'.repeat(65_536),
  's='.repeat(32_768),
  'é=\xff; \0=1',
])
  test(`A crafted Cookie header does no harm: ${JSON.stringify(header.slice(0, 12))}`, () => {
    const busy = processorTime()

    const value = readCookie(header, 's')
    const rest = withoutCookies(header, (name) => name === 's')

    assert.ok(value === undefined || header.startsWith(`s=${value}`))
    assert.equal(readCookie(rest, 's'), undefined)
    cookieNames(header, '')
    assert.ok(busy() < 200)
  })

test('The cookie of the gateway is removed from any Cookie header', () => {
  const text = fc.array(fc.constantFrom('s', '=', ';', ' ', '\t', '"', 'a', ',', '\xa0')).map((parts) => parts.join(''))
  fc.assert(
    fc.property(fc.oneof(text, fc.string()), (header) => {
      const rest = withoutCookies(header, (name) => name === 's')
      assert.ok(!(rest ?? '').split(';').some((pair) => pair.split('=')[0]?.trim() === 's'))
      const value = readCookie(header, 's')
      assert.ok(value === undefined || header.includes(value))
    }),
    { numRuns: searchFor(2000) },
  )
})

for (const name of [
  'JSESSIONID',
  '%20JSESSIONID',
  '+JSESSIONID',
  '+%20+JSESSIONID',
  '%09JSESSIONID',
  'JSESSIONID%00',
  'JSESSIONID%00x',
  '+JSESSIONID%00[a]',
  'JSESSIONID[a]',
  'JSESSION%49D',
  '$Version',
])
  test(`A cookie that an application may read as JSESSIONID does not reach it beside the kept one: ${name}`, () => {
    assert.equal(isWithheld([parseNamePattern('JSESSIONID')], name), true)
  })

for (const name of ['XJSESSIONID', 'JSESSIONID2', '%58JSESSIONID', 'x%00JSESSIONID'])
  test(`Another cookie reaches the application: ${name}`, () => {
    assert.equal(isWithheld([parseNamePattern('JSESSIONID')], name), false)
  })
