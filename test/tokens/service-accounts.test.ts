import assert from 'node:assert/strict'
import { scryptSync } from 'node:crypto'
import { test } from 'node:test'
import { createAccountLimits } from '../../src/limits/endpoint-limits.ts'
import { RejectedClients } from '../../src/limits/rejected-clients.ts'
import { type AccountIdentity, createProvenClients, ServiceAccounts } from '../../src/tokens/service-accounts.ts'
import { type Recorder, recorder } from '../session/redis-stores.ts'

const salt = Buffer.alloc(16)
const hashOf = (secret: string) => ({
  ...{ ln: 6, r: 8, p: 1, salt },
  hash: scryptSync(secret, salt, 32, { N: 64, r: 8, p: 1 }),
})

/** Accounts with these names and secrets. */
function open(...pairs: readonly (readonly [name: string, secret: string])[]) {
  return openWith(recorder(), pairs)
}

function openWith(log: Recorder, pairs: readonly (readonly [name: string, secret: string])[]) {
  const clock = { now: () => 0 }
  const rejectedClients = new RejectedClients(log, clock)
  const limits = { ...createAccountLimits({ clock, rejectedClients }), proven: createProvenClients() }
  const accounts = new ServiceAccounts({ clock, limits, issuer: 'https://orders.example.com' })
  const accepts = { accounts: pairs.map(([name, secret]) => ({ name, hash: hashOf(secret) })), claims: {} }
  return (name: string, secret: string, client = '192.0.2.7', upstream = 'orders') =>
    accounts.identify({ name, secret }, { name: upstream }, accepts, client)
}

test('A secret is that of one account, and an account may have two', async () => {
  const identify = open(['one', 'first'], ['two', 'second'], ['two', 'third'])
  const kindOf = async (name: string, secret: string) => (await identify(name, secret)).kind

  for (const [name, secret] of [
    ['one', 'first'],
    ['two', 'second'],
    ['two', 'third'],
  ] as const)
    assert.equal(await kindOf(name, secret), 'accepted')
  for (const [name, secret] of [
    ['one', 'second'],
    ['two', 'first'],
    ['three', 'first'],
    ['three', 'second'],
    ['three', 'third'],
    ['one', ''],
  ] as const)
    assert.equal(await kindOf(name, secret), 'refused', `${name} with ${secret}`)
  assert.equal((await open()('one', 'first')).kind, 'refused', 'there are no accounts')
})

test('A client that sends wrong secrets is limited, for all names', async () => {
  const log = recorder()
  const identify = openWith(log, [['one', 'first']])
  let attempts = 0
  for (let kind = ''; kind !== 'limited' && attempts < 1_000; attempts += 1)
    kind = (await identify(`name ${attempts}`, 'wrong')).kind

  assert.ok(attempts < 1_000, 'wrong secrets count')
  assert.deepEqual(log.warnings(), ['limit.reached'])
  assert.equal((await identify('one', 'first')).kind, 'limited')
  assert.equal((await identify('one', 'first', '198.51.100.1')).kind, 'accepted')
})

test('Wrong secrets of others do not lock out a client that knew the secret', async () => {
  const identify = open(['one', 'first'])
  assert.equal((await identify('one', 'first')).kind, 'accepted')
  let attempts = 0
  for (let kind = ''; kind !== 'limited' && attempts < 1_000; attempts += 1)
    kind = (await identify('one', 'wrong', `client ${attempts}`)).kind

  assert.ok(attempts < 1_000, 'wrong secrets count for the account')
  // For another upstream, the secret is not remembered.
  assert.equal((await identify('one', 'first', 'a new client', 'stock')).kind, 'limited')
  assert.equal((await identify('one', 'first', '192.0.2.7', 'stock')).kind, 'accepted')
})

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
