import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type AuditEvents, RepeatedDenials } from '../../src/observe/audit.ts'

test('A flood of refused tokens from many addresses becomes few audit events', () => {
  const recorded: [string, object][] = []
  const denials = new RepeatedDenials({ record: (event, fields) => void recorded.push([event, fields]) })
  const fields = { code: 'ERR_TOKEN_INVALID', reason: 'it is not active', upstream: 'orders', method: 'GET', path: '/' }
  const refuse = (client: string, changes: Partial<AuditEvents['caller.refused']> = {}) =>
    denials.record('caller.refused', { ...fields, ...changes } as AuditEvents['caller.refused'], {
      request: 'r',
      client,
    })

  for (let n = 0; n < 3000; n += 1) refuse(`192.0.${n >> 8}.${n & 255}`)
  // One machine may use a whole /64 network, and a client may choose the text of the reason.
  assert.equal(recorded.length, 1001)
  denials.flush()
  assert.deepEqual(recorded.slice(1001), [['caller.refused', { ...fields, repeated: 1999 }]])
  for (let n = 0; n < 50; n += 1) refuse(`2001:db8::${n + 1}`, { reason: `typ is ${n}` })
  assert.equal(recorded.length, 1003)
  refuse('2001:db8::1', { sub: 'jane' })
  assert.equal(recorded.length, 1004)
  denials.flush()
})
