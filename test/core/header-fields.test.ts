import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isHopByHop, isReservedField, withheldReason } from '../../src/core/header-fields.ts'

for (const { name, withheld, reserved } of [
  { name: 'connection', withheld: true, reserved: true },
  { name: 'http2-settings', withheld: true, reserved: true },
  { name: 'proxy-authorization', withheld: true, reserved: true },
  { name: 'proxy-status', withheld: false, reserved: true },
  { name: 'expect', withheld: true, reserved: true },
  { name: 'host', withheld: true, reserved: true },
  { name: 'forwarded', withheld: true, reserved: true },
  { name: 'x-real-ip', withheld: true, reserved: true },
  { name: 'x-forwarded-for', withheld: true, reserved: true },
  { name: 'x-forwarded-user', withheld: true, reserved: false },
  { name: 'x-original-url', withheld: true, reserved: false },
  { name: 'x-rewrite-url', withheld: true, reserved: false },
  { name: 'proxy', withheld: true, reserved: false },
  { name: 'x_remote.user', withheld: true, reserved: false },
  { name: 'traceparent', withheld: false, reserved: true },
  { name: 'gatehouse-loop', withheld: false, reserved: true },
  { name: 'content-length', withheld: false, reserved: true },
  { name: 'cookie', withheld: false, reserved: true },
  { name: 'set-cookie', withheld: false, reserved: true },
  { name: 'x-remote-user', withheld: false, reserved: false },
  { name: 'authorization', withheld: false, reserved: false },
])
  test(`a client's ${name} ${withheld ? 'never reaches' : 'may reach'} an upstream; the configuration ${reserved ? 'cannot' : 'can'} set it`, () => {
    assert.equal(withheldReason(name) !== undefined, withheld)
    assert.equal(isReservedField(name), reserved)
  })

test('Hop-by-hop fields are distinguished from other fields', () => {
  assert.equal(isHopByHop('te'), true)
  assert.equal(isHopByHop('x-te'), false)
})
