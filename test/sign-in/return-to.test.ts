import assert from 'node:assert/strict'
import { test } from 'node:test'
import { returnToOrHome } from '../../src/sign-in/query.ts'

const externalUrl = new URL('https://orders.example.com')
const back = (value: string | undefined) =>
  returnToOrHome(value, externalUrl, {
    reservedPrefix: '/.gatehouse/',
    isLogoutLink: (host, { segments }) => host === 'orders.example.com' && segments[0] === 'logout',
  })

for (const target of [
  '/',
  '/orders',
  '/orders/',
  '/orders/4711?view=lines&q=a%26b',
  '/a//b',
  '/search?q=https://elsewhere.example/',
  '/%C3%A9t%C3%A9',
  '/a;b=c',
  '/@elsewhere.example',
  '/?',
  '/.well-known/thing',
  '/gatehouse/sign-out',
  // The request handler rejects it, and says why.
  '/100%',
])
  test(`a sign-in returns to ${target}`, () => {
    assert.equal(back(target), target === '/?' ? '/' : target)
  })

test('a backslash in the query is encoded, because a Location must not contain one', () => {
  assert.equal(back('/search?path=C:\\temp'), '/search?path=C:%5Ctemp')
})

for (const target of [
  undefined,
  '',
  'orders',
  '?q=1',
  '#top',
  'https://orders.example.com/orders',
  'https://elsewhere.example/',
  '//elsewhere.example/',
  '///elsewhere.example/',
  '//orders.example.com/',
  '/\\elsewhere.example/',
  '\\\\elsewhere.example/',
  '/\t/elsewhere.example/',
  '/\n/elsewhere.example/',
  '/\r\\elsewhere.example/',
  '\t//elsewhere.example/',
  ' //elsewhere.example/',
  '/.//elsewhere.example/',
  '/./\\elsewhere.example/',
  '/a/..//elsewhere.example/',
  '/%2e//elsewhere.example/',
  '/%2E%2e//elsewhere.example/',
  'javascript:alert(1)',
  'java\nscript:alert(1)',
  'data:text/html,hello',
  'https:elsewhere.example',
  'https:/elsewhere.example',
  'http://[::1',
  '//[',
  '/.gatehouse/sign-out',
  '/.gatehouse',
  '/.GateHouse/sign-out',
  '/a/../.gatehouse/sign-out',
  '/%2egatehouse/sign-out',
  '/.%67atehouse/sign-out',
  '/./%2Egatehouse/signed-in',
  '/.gatehouse;a=b/sign-out',
  '/.gatehouse%2fsign-out',
  '/logout',
  '/logout?all=1',
  '/%6Cogout',
  '/a/../logout',
  '/.gatehouse/callback?code=c&state=s',
  `/${'x'.repeat(2000)}`,
])
  test(`a sign-in returns to / instead of ${JSON.stringify(target)?.slice(0, 60)}`, () => {
    assert.equal(back(target), '/')
  })

test('a line break in a target never gets into a header', () => {
  assert.equal(back('/a\r\nSet-Cookie: a=b'), '/aSet-Cookie:%20a=b')
})

test('a fragment is left to the browser', () => {
  assert.equal(back('/orders?a=1#line-3'), '/orders?a=1')
})

const wiki = 'https://wiki.example.com'
const notes = 'https://notes.apps.example.com:8443'
const site = {
  signInUrl: externalUrl,
  originOf: (host: string) =>
    new Map([
      ['orders.example.com', externalUrl.origin],
      ['wiki.example.com', wiki],
      ['notes.apps.example.com', notes],
    ]).get(host),
}
const backInSite = (value: string) =>
  returnToOrHome(value, externalUrl, {
    reservedPrefix: '/.gatehouse/',
    isLogoutLink: (host, { segments }) => host === 'wiki.example.com' && segments[0] === 'logout',
    site,
  })

for (const [target, end = target] of [
  ['/orders'],
  [`${wiki}/page?a=1`],
  [`${notes}/`],
  [`${wiki}/.gatehouse/signed-in`],
  ['https://orders.example.com/orders', '/orders'],
  [`${notes}/logout`],
  // Only the home page of the host remains of a path that is no page of an application.
  [`${wiki}/logout`, `${wiki}/`],
  [`${wiki}/.gatehouse/sign-out`, `${wiki}/`],
  [`${wiki}/%2egatehouse/sign-out`, `${wiki}/`],
  [`${wiki}//elsewhere.example/`, `${wiki}/`],
  [`${wiki}/\\elsewhere.example/`, `${wiki}/`],
  [`${wiki}/.//elsewhere.example/`, `${wiki}/`],
] as const)
  test(`with one session for a domain, a sign-in to ${target} ends at ${end}`, () => {
    assert.equal(backInSite(target), end)
  })

for (const target of [
  'https://elsewhere.example/',
  'https://wiki.example.com.elsewhere.example/',
  'https://elsewhere.example/https://wiki.example.com/',
  'https://unnamed.example.com/',
  'https://a.notes.apps.example.com:8443/',
  'https://example.com/',
  'http://wiki.example.com/',
  'https://wiki.example.com:8443/',
  'https://wiki.example.com:443/',
  'https://wiki.example.com:/',
  'https://notes.apps.example.com/',
  'https://notes.apps.example.com:08443/',
  'https://wiki.example.com',
  'https://wiki.example.com?/',
  'https://wiki.example.com#/',
  'https://wiki.example.com./',
  'https://Wiki.example.com/',
  'HTTPS://wiki.example.com/',
  'https:wiki.example.com/',
  'https:///wiki.example.com/',
  'https:\\\\wiki.example.com/',
  'https://wiki.example.com\\elsewhere.example/',
  'https://wiki.example.com\\@elsewhere.example/',
  'https://wiki.example.com@elsewhere.example/',
  'https://wiki.example.com:443@elsewhere.example/',
  'https://me@wiki.example.com/',
  'https://me:secret@wiki.example.com/',
  'https://@wiki.example.com/',
  'https://wiki.example.com%2f@elsewhere.example/',
  'https://wiki.example.com%2eelsewhere.example/',
  'https://wiki。example.com/',
  'https://ｗiki.example.com/',
  'https://wiki\t.example.com/',
  ' https://wiki.example.com/',
  'https://[::1]/',
  'https://[::ffff:127.0.0.1]/',
  'https://127.1/',
  '//wiki.example.com/',
  'https://*.apps.example.com/',
  'javascript://wiki.example.com/%0aalert(1)',
  `${wiki}/${'x'.repeat(2000)}`,
])
  test(`with one session for a domain, a sign-in returns to / instead of ${JSON.stringify(target).slice(0, 60)}`, () => {
    assert.equal(backInSite(target), '/')
  })
