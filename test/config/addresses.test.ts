import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  isEveryAddress,
  isLoopback,
  parseAddress,
  parseCookieDomain,
  parseHost,
  networkText,
  parseLooseSubnet,
  parseSubnet,
  parseUpstreamOrigin,
} from '../../src/config/addresses.ts'

for (const [written, address] of [
  ['0.0.0.0:8080', { host: '0.0.0.0', port: 8080 }],
  ['[::]:8080', { host: '::', port: 8080 }],
  ['my-host.internal:1', { host: 'my-host.internal', port: 1 }],
  ['127.0.0.1:0', { host: '127.0.0.1', port: 0 }],
  ['65535', { host: 'default', port: 65535 }],
  [80, { host: 'default', port: 80 }],
] as const) {
  test(`the address ${written}`, () => assert.deepEqual(parseAddress(written, 'default'), address))
}

for (const written of [
  '',
  ':80',
  '::1:80',
  '[::1]',
  '[1.2.3.4]:80',
  '[::g]:80',
  '[fe80::1%eth0]:80',
  '1.2.3:80',
  '1.2.3.256:80',
  'a b:80',
  '-a:80',
  'http://a:80',
  'a:b',
  'a:65536',
  -1,
  1.5,
  1e9,
]) {
  test(`${JSON.stringify(written)} is not a valid address`, () => {
    assert.throws(() => parseAddress(written, 'default'), { name: 'SyntaxError' })
  })
}

for (const [text, address, prefix, family] of [
  ['10.0.0.0/8', '10.0.0.0', 8, 'ipv4'],
  ['10.0.0.1', '10.0.0.1', 32, 'ipv4'],
  ['FD00:0::/8', 'fd00::', 8, 'ipv6'],
  ['::1', '::1', 128, 'ipv6'],
  ['::ffff:10.0.0.0/104', '10.0.0.0', 8, 'ipv4'],
] as const) {
  test(`the network ${text}`, () => assert.deepEqual(parseSubnet(text), { address, prefix, family }))
}

for (const [text, network, address] of [
  ['10.1.2.3/8', '10.0.0.0/8', '10.1.2.3'],
  ['192.168.1.129/25', '192.168.1.128/25', '192.168.1.129'],
  ['10.0.0.1/0', '0.0.0.0/0', '10.0.0.1'],
  ['2001:db8::1/64', '2001:db8::/64', '2001:db8::1'],
  ['2001:db8:0:ff::/57', '2001:db8:0:80::/57', '2001:db8:0:ff::'],
  ['fd12::/8', 'fd00::/8', 'fd12::'],
  ['::ffff:10.1.2.3/104', '10.0.0.0/8', '10.1.2.3'],
  ['::ffff:10.1.2.3/64', '::/64', '::ffff:a01:203'],
] as const)
  test(`${text} is never taken for a network, nor for an address`, () => {
    assert.throws(() => parseSubnet(text), {
      name: 'SyntaxError',
      message: `has an address within a network: write ${network} for the whole network, or ${address} for this address only`,
    })
    assert.equal(networkText(parseLooseSubnet(text)), network)
  })

for (const text of [
  '10.1.2.3/32',
  '::1/128',
  '::1.2.3.4',
  '0.0.0.0/0',
  '::/0',
  '192.168.1.128/25',
  'fe80::/10',
  '::ffff:0:0/96',
])
  test(`${text} has one meaning`, () => void parseSubnet(text))

for (const text of [
  '',
  '/8',
  '10.0.0.0/',
  '10.0.0.0/33',
  '10.0.0.0/-1',
  '10.0.0/8',
  '010.0.0.1',
  '::/129',
  ':::/8',
  'fe80::1%eth0',
  'localhost',
  '10.0.0.0/8/8',
]) {
  test(`${JSON.stringify(text)} is not a valid network`, () => {
    assert.throws(() => parseSubnet(text), { name: 'SyntaxError' })
  })
}

for (const [host, loopback] of [
  ['localhost', true],
  ['LOCALHOST', true],
  ['app.localhost', true],
  ['127.0.0.1', true],
  ['127.8.9.10', true],
  ['::1', true],
  ['[::1]', true],
  ['127.0.0.1.example.com', false],
  ['localhost.example.com', false],
  ['mylocalhost', false],
  ['10.0.0.1', false],
  ['0.0.0.0', false],
] as const) {
  test(`${host} is ${loopback ? '' : 'not '}this machine alone`, () => assert.equal(isLoopback(host), loopback))
}

test('The unspecified address is recognized in each spelling', () => {
  assert.deepEqual(['0.0.0.0', '::', '0:0::0', '127.0.0.1', '::1', 'localhost'].map(isEveryAddress), [
    true,
    true,
    true,
    false,
    false,
    false,
  ])
})

for (const [text, host] of [
  ['Orders.Example.com', 'orders.example.com'],
  ['orders.example.com.', 'orders.example.com'],
  ['bücher.example', 'xn--bcher-kva.example'],
  ['my_app', 'my_app'],
  ['[::1]', '[::1]'],
] as const) {
  test(`the host ${text}`, () => assert.equal(parseHost(text), host))
}

for (const [written, domain] of [
  ['example.com', 'example.com'],
  ['Apps.Example.COM.', 'apps.example.com'],
  ['bücher.example', 'xn--bcher-kva.example'],
] as const)
  test(`the cookie domain ${written}`, () => assert.equal(parseCookieDomain(written), domain))

for (const [written, why] of [
  ['.example.com', /must not begin with "\."/],
  ['*.example.com', /must not begin with "\*\."/],
  ['com', /one label/],
  ['localhost', /one label/],
  ['192.0.2.1', /IP address/],
  ['[2001:db8::1]', /IP address/],
  ['2001:db8::1', /IP address/],
  ['0x7f.1', /such as example\.com/],
  ['https://example.com', /without https?:/],
  ['example.com:8443', /without port/],
  ['example.com/a', /such as example\.com/],
  ['a@example.com', /such as example\.com/],
  ['example..com', /such as example\.com/],
  ['', /such as example\.com/],
] as const)
  test(`${JSON.stringify(written)} is not a cookie domain`, () => {
    assert.throws(() => parseCookieDomain(written), { name: 'SyntaxError', message: why })
  })

test('The first label in the origin of an upstream may be a wildcard', () => {
  assert.equal(parseUpstreamOrigin('https://*.Apps.example.com:443').origin, 'https://*.apps.example.com')
  assert.equal(parseUpstreamOrigin('HTTPS://*.apps.example.com:8443/').host, '*.apps.example.com:8443')
  for (const written of [
    'https://*',
    'https://*.',
    'https://**.example.com',
    'https://*.*.example.com',
    'https://*.1.2.3.4',
  ])
    assert.throws(() => parseUpstreamOrigin(written), { name: 'SyntaxError' }, written)
})
