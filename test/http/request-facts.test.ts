import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { TrustedProxies } from '../../src/http/forwarded.ts'
import { isPage, isScript, requestFacts } from '../../src/http/request-facts.ts'
import { hostName } from '../../src/http/request-target.ts'

const html = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'
const noProxies = new TrustedProxies([])

for (const [what, method, headers] of [
  ['a page', 'GET', { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document', accept: html }],
  ['a page without Sec-Fetch-Dest', 'GET', { 'sec-fetch-mode': 'navigate' }],
  ['a posted form', 'POST', { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }],
  ['a page for a browser that does not send Sec-Fetch', 'GET', { accept: html }],
  ['a form posted by such a browser', 'POST', { accept: html }],
  ['HEAD', 'HEAD', { accept: 'text/html' }],
  ['XHTML', 'GET', { accept: 'image/png, Application/XHTML+xml ; charset=utf-8;q=0.1' }],
  ['a page with Accept: */*', 'GET', { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document', accept: '*/*' }],
] as const)
  test(`A request is a page load: ${what}`, () => {
    assert.equal(isPage(method, headers), true)
  })

const fetched = { 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' }

for (const [what, method, headers] of [
  ['fetch()', 'GET', fetched],
  ['fetch() in the mode same-origin', 'GET', { 'sec-fetch-mode': 'same-origin', 'sec-fetch-dest': 'empty' }],
  ['fetch() with POST', 'POST', fetched],
  ['fetch() with DELETE', 'DELETE', fetched],
  ['fetch() with HEAD', 'HEAD', fetched],
  ['sendBeacon()', 'POST', { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'empty' }],
  ['XMLHttpRequest of an older browser', 'GET', { 'x-requested-with': 'XMLHttpRequest', accept: '*/*' }],
  ['JSON for an older browser', 'GET', { accept: 'application/json, text/plain, */*' }],
  ['a POST of an older browser', 'POST', { accept: '*/*' }],
] as const)
  test(`A request comes from a script: ${what}`, () => {
    assert.equal(isScript(method, headers), true)
  })

for (const [what, method, headers] of [
  ['a page', 'GET', { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document', accept: html }],
  ['a form', 'POST', { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document', accept: html }],
  ['an iframe', 'GET', { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' }],
  ['a form in an iframe', 'POST', { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' }],
  ['an image', 'GET', { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' }],
  ['an image with crossorigin', 'GET', { 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'image' }],
  ['a prefetched link', 'GET', { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'empty' }],
  ['a prefetched link with crossorigin', 'GET', { ...fetched, 'sec-purpose': 'prefetch' }],
  ['a page of an older browser', 'GET', { accept: html }],
  ['a form of an older browser', 'POST', { accept: html }],
  ['an image of an older browser', 'GET', { accept: 'image/*,*/*;q=0.8' }],
  ['a WebSocket', 'GET', { upgrade: 'websocket', 'sec-fetch-mode': 'websocket', 'sec-fetch-dest': 'empty' }],
] as const)
  test(`A request does not come from a script: ${what}`, () => {
    assert.equal(isScript(method, headers), false)
  })

for (const [what, method, headers] of [
  ['fetch()', 'GET', { 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty', accept: html }],
  ['an iframe', 'GET', { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe', accept: html }],
  ['an image', 'GET', { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image', accept: html }],
  ['an image without Sec-Fetch-Mode', 'GET', { 'sec-fetch-dest': 'image', accept: html }],
  ['two values of Sec-Fetch-Mode', 'GET', { 'sec-fetch-mode': 'navigate, cors', accept: html }],
  ['XMLHttpRequest', 'GET', { 'x-requested-with': 'xmlhttprequest', accept: html }],
  ['curl', 'GET', { accept: '*/*' }],
  ['no Accept', 'GET', {}],
  ['JSON', 'GET', { accept: 'application/json, text/plain' }],
  ['HTML rejected with q=0', 'GET', { accept: 'text/html;q=0, application/json' }],
  ['HTML rejected with q=0.000', 'GET', { accept: 'text/html; charset=utf-8; Q=0.000' }],
  ['a media type that begins like HTML', 'GET', { accept: 'text/html-sandboxed' }],
  ['PUT', 'PUT', { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document', accept: html }],
  ['a WebSocket', 'GET', { upgrade: 'websocket', 'sec-fetch-mode': 'navigate', accept: html }],
] as const)
  test(`A request is not a page load: ${what}`, () => {
    assert.equal(isPage(method, headers), false)
  })

for (const [host, name] of [
  ['Orders.Example.COM', 'orders.example.com'],
  ['orders.example.com:8443', 'orders.example.com'],
  ['orders.example.com.', 'orders.example.com'],
  ['orders.example.com.:443', 'orders.example.com'],
  ['[2001:DB8::1]:80', '[2001:db8::1]'],
  ['[::1]', '[::1]'],
  ['my_host', 'my_host'],
  ['', ''],
] as const)
  test(`The host name of ${JSON.stringify(host)} is ${name}`, () => {
    assert.equal(hostName(host), name)
  })

for (const host of [
  'a b',
  'a/b',
  'u@h',
  'a:b:c',
  'h:port',
  '::1',
  '[::1',
  'a\\b',
  'é',
  'a,b',
  'h?x',
  'h#x',
  `${'.'.repeat(60_000)}!`,
])
  test(`${JSON.stringify(host.slice(0, 20))} is rejected as Host`, () => {
    assert.throws(() => hostName(host), { code: 'ERR_REQUEST_MALFORMED' })
  })

function received(url: string, headers: Record<string, string | string[]>, remoteAddress = '192.0.2.1') {
  return { method: 'GET', url, headers, socket: { remoteAddress, encrypted: true } }
}

test('The authority of an absolute-form target replaces Host', () => {
  const facts = requestFacts(
    received('http://Orders.example:81/a', { host: 'evil.example' }),
    noProxies,
    'default.example',
  )

  assert.equal(facts.host, 'orders.example')
  assert.equal(facts.forwarded.host, 'Orders.example:81')
  assert.equal(facts.target.path, '/a')
})

test('The X-Forwarded-Host of a trusted proxy is the requested host, that of other peers is not', () => {
  const headers = { host: 'inside', 'x-forwarded-host': 'Shop.example:443', 'x-forwarded-proto': 'http' }
  const proxies = new TrustedProxies([{ address: '10.0.0.0', prefix: 8, family: 'ipv4' }])

  assert.equal(requestFacts(received('/', headers, '10.0.0.1'), proxies, 'default.example').host, 'shop.example')
  assert.equal(requestFacts(received('/', headers, '192.0.2.1'), proxies, 'default.example').host, 'inside')
  assert.equal(requestFacts(received('/', headers, '192.0.2.1'), proxies, 'default.example').forwarded.proto, 'https')
})

test('Several Cookie fields are joined', () => {
  assert.equal(requestFacts(received('/', { cookie: ['a=1', 'b=2'] }), noProxies, 'default.example').cookie, 'a=1; b=2')
  assert.equal(requestFacts(received('/', {}), noProxies, 'default.example').cookie, undefined)
})

test('A request without a target is rejected', () => {
  assert.throws(() => requestFacts({ method: 'GET', headers: {}, socket: {} }, noProxies, 'default.example'), {
    code: 'ERR_REQUEST_TARGET',
  })
})

test('The facts of a request can be read from the IncomingMessage of Node.js', async (t) => {
  const server = createServer((_, response) => response.end()).listen(0, '::')
  t.after(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const arrived = once(server, 'request') as Promise<[IncomingMessage]>
  const twice = ['Cookie', 'a=1', 'Cookie', 'b=2', 'Origin', 'null', 'Origin', 'null']
  send({ port, host: '127.0.0.1', path: '/a//b?c', headers: ['Host', 'H.example:1', ...twice, 'Accept', html] }).end()

  const [received] = await arrived
  const facts = requestFacts(received, noProxies, 'default.example')

  assert.deepEqual(facts, {
    headers: received.headers,
    method: 'GET',
    target: { path: '/a/b', segments: ['a', 'b'], query: '?c' },
    host: 'h.example',
    isPage: true,
    isFrame: false,
    isUpgrade: false,
    secFetchSite: undefined,
    origin: 'null, null',
    isPreflight: false,
    cookie: 'a=1; b=2',
    authorization: undefined,
    tls: undefined,
    clientCert: undefined,
    skippedSession: undefined,
    mcp: undefined,
    forwarded: { clientAddress: '127.0.0.1', proto: 'http', host: 'H.example:1', forwardedFor: '127.0.0.1' },
  })
})

const ofFrame = '__Host-gatehouse-frame.session=id'
const inFrame = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe', 'sec-fetch-site': 'cross-site' }

for (const [what, counts, method, headers] of [
  ['a page of this origin', true, 'POST', { 'sec-fetch-site': 'same-origin' }],
  ['a page of this origin that opens a WebSocket', true, 'GET', { upgrade: 'websocket', origin: 'https://app.test' }],
  ['the load of a frame', true, 'GET', inFrame],
  ['a form that another site posts into a frame', false, 'POST', inFrame],
  ['an image in a page of another site', false, 'GET', { ...inFrame, 'sec-fetch-dest': 'image' }],
  ['an <object> in a page of another site', false, 'GET', { ...inFrame, 'sec-fetch-dest': 'object' }],
  ['a page of another origin of the site', false, 'GET', { 'sec-fetch-site': 'same-site' }],
  ['a page of another site that opens a WebSocket', false, 'GET', { upgrade: 'websocket', origin: 'https://b.test' }],
  ['a page of this host over http', false, 'GET', { origin: 'http://app.test' }],
  ['a client that is not a browser', false, 'GET', {}],
] as const)
  test(`The cookie of a frame ${counts ? 'counts' : 'does not count'} in a request of ${what}`, () => {
    const request = { method, url: '/', headers: { host: 'app.test', cookie: `a=1; ${ofFrame}; b=2`, ...headers } }

    const { cookie } = requestFacts({ ...request, socket: {} }, noProxies, 'app.test')

    assert.equal(cookie, counts ? `a=1; ${ofFrame}; b=2` : 'a=1; b=2')
  })
