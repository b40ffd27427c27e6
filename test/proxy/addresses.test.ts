import assert from 'node:assert/strict'
import { test } from 'node:test'
import { canonicalTarget } from '../../src/http/request-target.ts'
import { Addresses } from '../../src/proxy/addresses.ts'

const plain: ConstructorParameters<typeof Addresses>[0] = {
  url: new URL('http://127.0.0.1:3000'),
  path: '/',
  stripPath: false,
  alsoKnownAs: ['http://intranet.corp:8080'],
  hostHeader: 'client',
  originHeader: 'client',
  setCookie: { domain: undefined, path: undefined, secure: false, sameSite: undefined },
  externalUrl: new URL('https://orders.example.com'),
  hosts: ['orders.example.com', 'old.example.com'],
}
const wiki = { ...plain, path: '/wiki/', url: new URL('http://127.0.0.1:3000/app'), stripPath: true }
const based = { ...plain, url: new URL('http://127.0.0.1:3000/app/') }
const stripped = { ...plain, path: '/a/wiki/', stripPath: true }
const addressesOf = (config: ConstructorParameters<typeof Addresses>[0]) => new Addresses(config, '/.gatehouse/')

for (const [config, target, expected] of [
  [plain, '/wiki/start?a=b', '/wiki/start?a=b'],
  [based, '/wiki/start?a=b', '/app/wiki/start?a=b'],
  [based, '/', '/app/'],
  [wiki, '/wiki/start?a=/wiki/', '/app/start?a=/wiki/'],
  [wiki, '/wiki', '/app/'],
  [wiki, '/wiki/', '/app/'],
  [wiki, '/wiki?x', '/app/?x'],
  [wiki, '/wiki//evil.example.com/x', '/app/evil.example.com/x'],
  [wiki, '/wiki/a%2fb', '/app/a%2fb'],
  [wiki, '/wiki/a/../b/', '/app/b/'],
  [stripped, '/a/wiki/start/', '/start/'],
  [stripped, '/a/wiki', '/'],
  [stripped, '/a/wiki//evil.example.com', '/evil.example.com'],
] as const)
  test(`An upstream at ${config.url.href} with ${config.path} gets ${expected} for ${target}`, () => {
    const { path, query } = canonicalTarget(target)

    assert.equal(addressesOf(config).path(path, query), expected)
  })

for (const target of ['/wiki/../../x', '/wiki/..%2fx', '/wiki/..;/x', '/wiki/%252e%252e/x', '/wiki\\..\\x'])
  test(`No path leaves the path of an upstream: ${target}`, () => {
    assert.throws(() => canonicalTarget(target), { code: 'ERR_REQUEST_TARGET' })
  })

for (const [config, received, expected] of [
  // The addresses of the application.
  [plain, 'http://127.0.0.1:3000/x?y#z', '/x?y#z'],
  [plain, 'http://intranet.corp:8080/x', '/x'],
  [plain, 'HTTP://Intranet.Corp:8080', '/'],
  [plain, '//intranet.corp:8080/x', '/x'],
  [plain, 'https://intranet.corp:8080/x', 'https://intranet.corp:8080/x'],
  [plain, 'http://intranet.corp/x', 'http://intranet.corp/x'],
  [plain, 'http://intranet.corp:8080.evil.example/x', 'http://intranet.corp:8080.evil.example/x'],
  [plain, 'http://a@intranet.corp:8080/x', 'http://a@intranet.corp:8080/x'],
  [wiki, 'http://intranet.corp:8080/app/x', '/wiki/x'],
  [wiki, 'http://127.0.0.1:3000/app', '/wiki/'],
  [wiki, 'http://127.0.0.1:3000/application', 'http://127.0.0.1:3000/application'],
  [stripped, 'http://127.0.0.1:3000/x', '/a/wiki/x'],
  // Paths.
  [plain, '/x', '/x'],
  [based, '/app/x', '/x'],
  [based, '/x', '/x'],
  [wiki, '/app/x?a', '/wiki/x?a'],
  [wiki, '/wiki/x', '/wiki/x'],
  [wiki, 'x/y', 'x/y'],
  [wiki, '?x', '?x'],
  [wiki, '', ''],
  [stripped, '/x', '/a/wiki/x'],
  [stripped, '/a/wiki', '/a/wiki'],
  [stripped, '/a/wikis', '/a/wiki/a/wikis'],
  [stripped, '/.gatehouse/sign-out', '/.gatehouse/sign-out'],
  // The public address.
  [plain, 'http://orders.example.com/x', 'https://orders.example.com/x'],
  [plain, 'http://orders.example.com:80/x', 'https://orders.example.com/x'],
  [plain, 'http://orders.example.com?x', 'https://orders.example.com?x'],
  [plain, 'http://old.example.com/x', 'https://old.example.com/x'],
  [plain, 'https://orders.example.com/x', 'https://orders.example.com/x'],
  [plain, 'http://orders.example.com:8080/x', 'http://orders.example.com:8080/x'],
  [plain, 'http://orders.example.com@evil.example/x', 'http://orders.example.com@evil.example/x'],
  [plain, 'http://orders.example.com.evil.example/x', 'http://orders.example.com.evil.example/x'],
  [stripped, 'http://orders.example.com/login', 'https://orders.example.com/a/wiki/login'],
  [stripped, 'https://orders.example.com/a/wiki/login', 'https://orders.example.com/a/wiki/login'],
  [
    { ...plain, externalUrl: new URL('http://orders.example.com') },
    'http://orders.example.com/x',
    'http://orders.example.com/x',
  ],
  [
    { ...plain, externalUrl: new URL('https://orders.example.com:8443') },
    'http://orders.example.com:8443/',
    'https://orders.example.com:8443/',
  ],
  [
    { ...plain, externalUrl: new URL('https://orders.example.com:8443') },
    'http://orders.example.com/',
    'https://orders.example.com:8443/',
  ],
  // Nothing becomes the address of another host.
  [plain, 'http://127.0.0.1:3000//evil.example', '/evil.example'],
  [plain, 'http://127.0.0.1:3000/\\evil.example', '/evil.example'],
  [plain, 'http://127.0.0.1:3000/\t/evil.example', '/evil.example'],
  [based, '/app//evil.example', '/evil.example'],
  [based, '/app/\\evil.example', '/evil.example'],
  [based, '/app/\t/evil.example', '/evil.example'],
  [wiki, '/app//evil.example', '/wiki/evil.example'],
  [stripped, '//evil.example/x', '//evil.example/x'],
  [stripped, '/\\evil.example/x', '/\\evil.example/x'],
  [stripped, 'https://evil.example/x', 'https://evil.example/x'],
  [stripped, 'javascript:alert(1)', 'javascript:alert(1)'],
] as const)
  test(`A redirect of ${config.url.href} with ${config.path} to ${JSON.stringify(received)} leads to ${expected}`, () => {
    for (const name of ['location', 'content-location'])
      assert.equal(addressesOf(config).response(name, received), expected)
  })

for (const [name, received, expected] of [
  ['refresh', '5; url=http://intranet.corp:8080/app/x', '5; url=/wiki/x'],
  ['refresh', '0;URL="/app/x"', '0;URL="/wiki/x"'],
  ['refresh', "0, '/app/x'", "0, '/wiki/x'"],
  ['refresh', '5', '5'],
  ['refresh', '5; url=https://evil.example/', '5; url=https://evil.example/'],
  [
    'link',
    '</app/a.css>; rel=preload, <http://intranet.corp:8080/app/b>; rel="next"',
    '</wiki/a.css>; rel=preload, </wiki/b>; rel="next"',
  ],
  ['link', '<https://cdn.example/a>; rel=preload', '<https://cdn.example/a>; rel=preload'],
  ['x-location', '/app/x', '/app/x'],
] as const)
  test(`${name}: ${received} becomes ${expected}`, () => {
    assert.equal(addressesOf(wiki).response(name, received), expected)
  })

const gentle = { ...plain, setCookie: { domain: 'remove', path: '/x/', secure: true, sameSite: 'lax' } } as const
const everywhere = { ...plain, setCookie: { ...plain.setCookie, sameSite: 'none' } } as const

for (const [config, received, expected] of [
  [{ ...plain, alsoKnownAs: [] }, 'a=1;path=/; DOMAIN=intranet.corp', 'a=1;path=/; DOMAIN=intranet.corp'],
  [plain, 'a=1; Path=/x; Domain=intranet.corp; HttpOnly', 'a=1; Path=/x; HttpOnly'],
  [plain, 'a=1; domain=.corp', 'a=1'],
  [plain, 'a=1; Domain=example.com', 'a=1; Domain=example.com'],
  [wiki, 'a=1; Path=/app', 'a=1; Path=/wiki'],
  [wiki, 'a=1; Path=/app/x; Secure', 'a=1; Path=/wiki/x; Secure'],
  [wiki, 'a=1; Path=/', 'a=1; Path=/wiki'],
  [wiki, 'a=1; Path=/wiki/x', 'a=1; Path=/wiki/x'],
  [wiki, 'a=1; Path=/application', 'a=1; Path=/application'],
  [wiki, 'a=1', 'a=1'],
  [wiki, '__Host-a=1; Path=/; Secure', '__Host-a=1; Path=/; Secure'],
  [stripped, 'a=1; path=/', 'a=1; Path=/a/wiki'],
  [stripped, 'a=1; path = /x/', 'a=1; Path=/a/wiki/x/'],
  [based, 'a=1; path=/app', 'a=1; Path=/'],
  [based, 'a=1; path=/app/x', 'a=1; Path=/x'],
  [gentle, 'a=b=c; Path=/; Domain=example.com; SameSite=None', 'a=b=c; Path=/x/; Secure; SameSite=Lax'],
  [gentle, '__Host-a=1; Path=/; Secure', '__Host-a=1; Path=/; Secure; SameSite=Lax'],
  [everywhere, 'a=1; Max-Age=5', 'a=1; Max-Age=5; Secure; SameSite=None'],
] as const)
  test(`Behind ${config.url.href} with ${config.path}, the cookie "${received}" becomes "${expected}"`, () => {
    assert.equal(addressesOf(config).response('set-cookie', received), expected)
  })

const folder = { ...plain, path: '/files/' } as const
const ownOrigin = { ...wiki, originHeader: 'upstream' } as const
const ownHost = { ...wiki, hostHeader: 'upstream' } as const

for (const [config, name, received, expected] of [
  [plain, 'Destination', 'https://orders.example.com/a', 'https://orders.example.com/a'],
  [wiki, 'Origin', 'https://orders.example.com', 'https://orders.example.com'],
  [folder, 'Destination', 'https://orders.example.com/files/a', 'https://orders.example.com/files/a'],
  [folder, 'Destination', 'https://orders.example.com/admin/a', undefined],
  [folder, 'Destination', 'https://orders.example.com/files/../admin', undefined],
  [based, 'Destination', 'https://orders.example.com/a%20b', 'https://orders.example.com/app/a%20b'],
  [wiki, 'Destination', 'https://orders.example.com/wiki/a%20b', 'https://orders.example.com/wiki/a%20b'],
  [wiki, 'destination', '/wiki/a/../b', 'https://orders.example.com/wiki/b'],
  [wiki, 'Destination', 'https://orders.example.com/wiki/../admin', undefined],
  [wiki, 'Destination', 'https://orders.example.com/wiki/..%2fadmin', undefined],
  [wiki, 'Destination', 'https://orders.example.com/other/a', undefined],
  [wiki, 'Destination', 'https://other.example/wiki/a', 'https://other.example/wiki/a'],
  [ownHost, 'Destination', 'https://orders.example.com/wiki/a', 'http://127.0.0.1:3000/wiki/a'],
  [ownOrigin, 'Origin', 'https://orders.example.com', 'http://127.0.0.1:3000'],
  [ownOrigin, 'Origin', 'https://evil.example', 'https://evil.example'],
  [ownOrigin, 'Origin', 'null', 'null'],
  [ownOrigin, 'Origin', 'http://orders.example.com', 'http://orders.example.com'],
  [ownOrigin, 'Origin', '/', '/'],
  [ownOrigin, 'Referer', 'http://orders.example.com/wiki/a', 'http://orders.example.com/wiki/a'],
  [wiki, 'Destination', '//evil.example/wiki/a', '//evil.example/wiki/a'],
  [ownOrigin, 'Referer', 'https://orders.example.com/wiki/a?b', 'http://127.0.0.1:3000/app/a?b'],
  [ownOrigin, 'Referer', 'https://orders.example.com/other', 'http://127.0.0.1:3000/'],
  [ownOrigin, 'Referer', 'https://evil.example/wiki', 'https://evil.example/wiki'],
] as const)
  test(`With ${config.path}, ${config.originHeader} and ${config.hostHeader}, ${name}: ${received} becomes ${expected}`, () => {
    const fields = addressesOf(config).request(['Accept', '*/*', name, received], 'orders.example.com')

    assert.deepEqual(fields, ['Accept', '*/*', ...(expected === undefined ? [] : [name, expected])])
  })
