import assert from 'node:assert/strict'
import { scryptSync } from 'node:crypto'
import { test } from 'node:test'
import { createAccountLimits } from '../../src/limits/endpoint-limits.ts'
import { RejectedClients } from '../../src/limits/rejected-clients.ts'
import { type AccountIdentity, createProvenClients, ServiceAccounts } from '../../src/tokens/service-accounts.ts'
import { recorder } from '../session/redis-stores.ts'

test('Secrets beyond those that may wait are refused, and later ones are verified again', async () => {
  const clock = { now: () => 0 }
  const rejectedClients = new RejectedClients(recorder(), clock)
  const limits = { ...createAccountLimits({ clock, rejectedClients }), proven: createProvenClients() }
  const accounts = new ServiceAccounts({ clock, limits, issuer: 'https://orders.example.com' })
  const salt = Buffer.alloc(16)
  const hash = { ln: 6, r: 8, p: 1, salt, hash: scryptSync('right', salt, 32, { N: 64, r: 8, p: 1 }) }
  const accepts = { accounts: [{ name: 'backup', hash }], claims: {} }
  const identify = (name: string, secret: string, client: string) =>
    accounts.identify({ name, secret }, { name: 'orders' }, accepts, client)

  const all = [...Array(80).keys()].map((n) => identify(`name-${n}`, 'wrong', `client ${n}`))

  const refused = all.filter((identity): identity is AccountIdentity => !(identity instanceof Promise))
  assert.equal(refused.length, 14, 'two are computed, and 64 wait')
  assert.deepEqual(new Set(refused.map(({ kind }) => kind)), new Set(['unavailable']))
  await Promise.all(all.filter((identity) => identity instanceof Promise))
  assert.equal((await identify('backup', 'right', 'another client')).kind, 'accepted')
})
