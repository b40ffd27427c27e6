import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hostName, isAuthority } from '../../src/http/request-target.ts'

for (const host of [
  'example.com:99999',
  'example.com:65536',
  '[::::]',
  '[:.:.]',
  '[127.0.0.1]',
  '[1::2::3]',
  '[::1]:70000',
])
  test(`A host with an invalid port or address is rejected: ${host}`, () => assert.equal(isAuthority(host), false))

for (const host of ['example.com:65535', 'example.com:', '[::1]', '[::ffff:192.0.2.1]:80', '999.1.1.1'])
  test(`A host is accepted: ${host}`, () => assert.equal(isAuthority(host), true))

test('A host is judged by itself, whatever the hosts before it were', () => {
  const hosts: readonly (readonly [host: string, name: string | undefined])[] = [
    ['example.com', 'example.com'],
    ['Example.com:8443', 'example.com'],
    ['example.com.', 'example.com'],
    ['[2001:DB8::1]:80', '[2001:db8::1]'],
    ['example.com@evil', undefined],
    ['example.com:80:80', undefined],
    ['a b', undefined],
  ]
  for (const [before] of hosts)
    for (const [host, name] of hosts)
      for (let times = 0; times < 2; times++) {
        if (isAuthority(before)) hostName(before)
        assert.equal(isAuthority(host), name !== undefined, host)
        if (name === undefined) assert.throws(() => hostName(host), { code: 'ERR_REQUEST_MALFORMED' })
        else assert.equal(hostName(host), name)
      }
  assert.equal(isAuthority(''), false)
})
