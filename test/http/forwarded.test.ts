import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  forwardedFacts,
  type HeaderView,
  requestId,
  TrustedProxies,
  UntrustedProxies,
} from '../../src/http/forwarded.ts'
import { searchFor } from '../support/searches.ts'

const trusted = new TrustedProxies([
  { address: '10.0.0.0', prefix: 8, family: 'ipv4' },
  { address: '2001:db8:ffff::', prefix: 48, family: 'ipv6' },
])

function facts(peer: string | undefined, headers: HeaderView, encrypted = false) {
  return forwardedFacts({ peer, encrypted, host: 'orders.example.com' }, headers, trusted)
}

const spoofed = {
  'x-forwarded-for': '192.0.2.99',
  'x-forwarded-proto': 'https',
  'x-forwarded-host': 'evil.example',
  'x-real-ip': '192.0.2.99',
  forwarded: 'for=192.0.2.99;proto=https;host=evil.example',
}

for (const peer of ['192.0.2.1', '11.0.0.1', '2001:db8::1', '::ffff:192.0.2.1'])
  test(`The forwarding headers of the untrusted peer ${peer} are ignored`, () => {
    const address = peer.replace('::ffff:', '')

    assert.deepEqual(facts(peer, spoofed), {
      clientAddress: address,
      proto: 'http',
      host: 'orders.example.com',
      forwardedFor: address,
    })
  })

test('Without trusted_proxies, no peer is trusted', () => {
  const connection = { peer: '127.0.0.1', encrypted: true, host: 'h' }

  const believed = forwardedFacts(connection, spoofed, new TrustedProxies([]))

  assert.deepEqual(believed, { clientAddress: '127.0.0.1', proto: 'https', host: 'h', forwardedFor: '127.0.0.1' })
})

for (const peer of ['10.1.2.3', '::ffff:10.1.2.3', '::FFFF:0a01:0203'])
  test(`The forwarding headers of the trusted proxy ${peer} are used`, () => {
    assert.deepEqual(facts(peer, spoofed), {
      clientAddress: '192.0.2.99',
      proto: 'https',
      host: 'evil.example',
      forwardedFor: '192.0.2.99, 10.1.2.3',
    })
  })

for (const [chain, client, forwardedFor] of [
  ['192.0.2.1', '192.0.2.1', '192.0.2.1, 10.0.0.1'],
  ['192.0.2.1, 10.0.0.7', '192.0.2.1', '192.0.2.1, 10.0.0.7, 10.0.0.1'],
  ['1.1.1.1, 192.0.2.1, 10.0.0.7', '192.0.2.1', '192.0.2.1, 10.0.0.7, 10.0.0.1'],
  ['10.0.0.9, 192.0.2.1,10.0.0.7', '192.0.2.1', '192.0.2.1, 10.0.0.7, 10.0.0.1'],
  ['10.0.0.8, 10.0.0.7', '10.0.0.8', '10.0.0.8, 10.0.0.7, 10.0.0.1'],
  ['192.0.2.1, unknown, 10.0.0.7', '10.0.0.7', '10.0.0.7, 10.0.0.1'],
  ['192.0.2.1, <script>', '10.0.0.1', '10.0.0.1'],
  ['', '10.0.0.1', '10.0.0.1'],
  [',,,', '10.0.0.1', '10.0.0.1'],
  ['192.0.2.1:4711', '192.0.2.1', '192.0.2.1, 10.0.0.1'],
  ['2001:DB8:0::1', '2001:db8::1', '2001:db8::1, 10.0.0.1'],
  ['192.0.2.1, [2001:db8:ffff::5]:443', '192.0.2.1', '192.0.2.1, 2001:db8:ffff::5, 10.0.0.1'],
  ['::ffff:192.0.2.1', '192.0.2.1', '192.0.2.1, 10.0.0.1'],
  ['fe80::1%eth0', 'fe80::1', 'fe80::1, 10.0.0.1'],
  [`${'1.1.1.1, '.repeat(1000)}192.0.2.1`, '192.0.2.1', '192.0.2.1, 10.0.0.1'],
  [`${'1'.repeat(5000)}, 192.0.2.1`, '192.0.2.1', '192.0.2.1, 10.0.0.1'],
  ['1'.repeat(5000), '10.0.0.1', '10.0.0.1'],
] as const)
  test(`X-Forwarded-For is read from the right: ${chain.slice(0, 40)}`, () => {
    const believed = facts('10.0.0.1', { 'x-forwarded-for': chain })

    assert.deepEqual([believed.clientAddress, believed.forwardedFor], [client, forwardedFor])
  })

for (const [headers, proto, host] of [
  [{ 'x-forwarded-proto': 'HTTPS' }, 'https', 'orders.example.com'],
  [{ 'x-forwarded-proto': 'wss' }, 'https', 'orders.example.com'],
  [{ 'x-forwarded-proto': 'http, https' }, 'https', 'orders.example.com'],
  [{ 'x-forwarded-proto': 'https, gopher' }, 'http', 'orders.example.com'],
  [{ 'x-forwarded-proto': '__proto__' }, 'http', 'orders.example.com'],
  [{ 'x-forwarded-host': 'a.example:8443' }, 'http', 'a.example:8443'],
  [{ 'x-forwarded-host': 'evil.example, a.example' }, 'http', 'a.example'],
  [{ 'x-forwarded-host': 'a.example/..' }, 'http', 'orders.example.com'],
  [{ 'x-forwarded-host': 'a.example\r\nx: y' }, 'http', 'orders.example.com'],
  [{ 'x-forwarded-host': '' }, 'http', 'orders.example.com'],
] as const)
  test(`The headers ${JSON.stringify(headers)} of a trusted proxy mean ${proto}://${host}`, () => {
    const believed = facts('10.0.0.1', headers)

    assert.deepEqual([believed.proto, believed.host, believed.clientAddress], [proto, host, '10.0.0.1'])
  })

for (const [forwarded, client, proto, host] of [
  ['for=192.0.2.1;proto=https;host=a.example', '192.0.2.1', 'https', 'a.example'],
  ['For="[2001:db8::1]:4711" ; PROTO=https', '2001:db8::1', 'https', 'orders.example.com'],
  [
    'for=1.1.1.1;host=evil.example, for=192.0.2.1;proto=https;host=a.example, for=10.0.0.7',
    '192.0.2.1',
    'https',
    'a.example',
  ],
  ['for=192.0.2.1, for=_hidden', '10.0.0.1', 'http', 'orders.example.com'],
  ['for="192.0.2.1, 10.0.0.7";host="a, b"', '10.0.0.1', 'http', 'orders.example.com'],
  ['for="192.0.2\\.1"', '192.0.2.1', 'http', 'orders.example.com'],
  ['for=192.0.2.1;proto="https', '10.0.0.1', 'http', 'orders.example.com'],
  ['for="192.0.2.1:99999"', '10.0.0.1', 'http', 'orders.example.com'],
  ['for="192.0.2.1:80x"', '10.0.0.1', 'http', 'orders.example.com'],
  ['for="192.0.2.1:_hidden"', '192.0.2.1', 'http', 'orders.example.com'],
  ['for 192.0.2.1', '10.0.0.1', 'http', 'orders.example.com'],
  ['', '10.0.0.1', 'http', 'orders.example.com'],
] as const)
  test(`The client address in Forwarded: ${forwarded}`, () => {
    const believed = facts('10.0.0.1', { forwarded })

    assert.deepEqual([believed.clientAddress, believed.proto, believed.host], [client, proto, host])
  })

test('Forwarded is ignored beside X-Forwarded-*', () => {
  const believed = facts('10.0.0.1', { 'x-forwarded-proto': 'https', forwarded: 'for=192.0.2.1' })

  assert.equal(believed.clientAddress, '10.0.0.1')
})

test('A client that sends a long X-Forwarded-For neither hides its address nor makes Forwarded count', () => {
  const believed = facts('10.0.0.1', {
    'x-forwarded-for': [`${'10.0.0.2, '.repeat(1000)}10.0.0.2`, '192.0.2.1'],
    forwarded: 'for=192.0.2.99;proto=https;host=evil.example',
  })

  assert.deepEqual(believed, {
    clientAddress: '192.0.2.1',
    proto: 'http',
    host: 'orders.example.com',
    forwardedFor: '192.0.2.1, 10.0.0.1',
  })
})

for (const name of ['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host'])
  test(`Forwarded is ignored beside a ${name} that is too long`, () => {
    const believed = facts('10.0.0.1', { [name]: 'a'.repeat(5000), forwarded: 'for=192.0.2.99;host=evil.example' })

    assert.deepEqual([believed.clientAddress, believed.host], ['10.0.0.1', 'orders.example.com'])
  })

test('No value makes the parser throw or take long, or is forwarded unchecked', () => {
  const odd = fc.array(
    fc.oneof(
      fc.constantFrom('for=', 'proto=https', 'host=', '"', '\\', ',', ';', '10.0.0.2', '192.0.2.1', '[::1]', '%', ' '),
      fc.string(),
    ),
  )
  fc.assert(
    fc.property(odd, odd, odd, (a, b, c) => {
      const [one, two, three] = [a, b, c].map((parts) => parts.join(''))
      for (const headers of [
        { forwarded: one },
        { 'x-forwarded-for': one, 'x-forwarded-host': two, 'x-forwarded-proto': three },
      ]) {
        const believed = facts('10.0.0.1', headers)
        assert.match(believed.forwardedFor, /^[\d.a-f:, ]+$/)
        assert.match(believed.host, /^[\w.:[\]-]+$/)
      }
    }),
    { numRuns: searchFor(2000) },
  )
})

test('A closed socket has no address and is not trusted', () => {
  assert.equal(facts(undefined, spoofed).clientAddress, 'unknown')
})

test('A proxy may say nothing about the client, and still says the scheme', () => {
  const believed = facts('10.0.0.1', { forwarded: 'proto=https;host=other.example' })

  assert.deepEqual(believed, {
    clientAddress: '10.0.0.1',
    proto: 'https',
    host: 'other.example',
    forwardedFor: '10.0.0.1',
  })
})

test('Only a trusted proxy chooses the id of a request, and only one that is safe to print', () => {
  const idOf = (id: string | string[], peer: string | undefined) => requestId({ 'x-request-id': id }, peer, trusted)

  assert.equal(idOf('r-1', '10.0.0.1'), 'r-1')
  assert.notEqual(idOf('r-1', '192.0.2.1'), 'r-1')
  assert.notEqual(idOf('r-1', undefined), 'r-1')
  for (const id of ['', 'r 1', 'r\n1', '<b>', 'x'.repeat(129)]) assert.notEqual(idOf(id, '10.0.0.1'), id)
  assert.notEqual(idOf(['r-1'], '10.0.0.1'), 'r-1')
  assert.notEqual(idOf('', '10.0.0.1'), idOf('', '10.0.0.1'), 'each request has its own')
})

test('A peer that is not trusted and sends fields of a proxy is named once, and few peers are', () => {
  const named: unknown[] = []
  const note = (_message: string, fields: Readonly<Record<string, unknown>> = {}) => void named.push(fields['peer'])
  const log = { debug() {}, info() {}, warn: note, error() {}, announce() {} }
  const proxies = new UntrustedProxies(trusted, log)

  proxies.note('192.0.2.1', {})
  proxies.note('10.0.0.1', spoofed)
  proxies.note(undefined, spoofed)
  assert.deepEqual(named, [])
  for (let turn = 0; turn < 2; turn += 1) proxies.note('192.0.2.1', { 'x-forwarded-proto': 'https' })
  assert.deepEqual(named, ['192.0.2.1'])
  for (let at = 1; at < 20; at += 1) proxies.note(`192.0.2.${at}`, spoofed)
  assert.equal(named.length, 8)
})
