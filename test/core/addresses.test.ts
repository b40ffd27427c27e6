import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AddressSet, clientOf, ipAddress } from '../../src/core/addresses.ts'

for (const [text, address] of [
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['::FFFF:C000:0201', '192.0.2.1'],
  ['0:0:0:0:0:ffff:192.0.2.1', '192.0.2.1'],
  ['2001:DB8:0:0::1', '2001:db8::1'],
  ['fe80::1%eth0', 'fe80::1'],
  ['::1', '::1'],
  ['[::1]', undefined],
  ['192.0.2.1:80', undefined],
  ['192.0.2', undefined],
  ['192.0.2.256', undefined],
  ['0300.0.2.1', undefined],
  ['host', undefined],
  ['', undefined],
] as const)
  test(`${JSON.stringify(text)} as an address is ${address}`, () => {
    assert.equal(ipAddress(text), address)
  })

test('An address set matches IPv4 and IPv6 networks', () => {
  const set = new AddressSet([
    { address: '10.0.0.0', prefix: 8, family: 'ipv4' },
    { address: '127.0.0.1', prefix: 32, family: 'ipv4' },
    { address: '2001:db8::', prefix: 32, family: 'ipv6' },
  ])

  for (const inside of ['10.0.0.0', '10.255.255.255', '127.0.0.1', '2001:db8:ffff::1'])
    assert.ok(set.has(inside), inside)
  for (const outside of ['11.0.0.0', '127.0.0.2', '2001:db9::1', '::1', '::', 'unknown', '', '10.0.0.0/8'])
    assert.ok(!set.has(outside), outside)
})

test('A repeated lookup gives the same result when the cache is full', () => {
  const set = new AddressSet([{ address: '10.0.0.0', prefix: 9, family: 'ipv4' }])
  const address = (index: number) => `10.${index % 256}.${index >> 8}.1`

  for (let round = 0; round < 2; round++)
    for (let index = 0; index < 3000; index++) assert.equal(set.has(address(index)), index % 256 < 128)
})

for (const [address, client] of [
  ['192.0.2.1', '192.0.2.1'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:2::6', '2001:db8:1:2::/64'],
  ['2001:db8::6', '2001:db8:0:0::/64'],
  ['2001:db8::', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['::', '0:0:0:0::/64'],
  ['1:2:3:4:5:6:7::', '1:2:3:4::/64'],
  ['1::3:4:5:6:7:8', '1:0:3:4::/64'],
  ['unknown', 'unknown'],
] as const)
  test(`${address} is counted as ${client}`, () => {
    assert.equal(clientOf(address), client)
  })
