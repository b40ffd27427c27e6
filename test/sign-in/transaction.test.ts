import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { Keyring } from '../../src/core/seal.ts'
import { SessionCookie } from '../../src/session/cookies/session-cookie.ts'
import {
  transactionFromState,
  transactionToState,
  beginTransaction,
  expireTransactions,
  isBoundTo,
  isExpired,
  bindTransaction,
} from '../../src/sign-in/transaction.ts'

const began = Date.UTC(2026, 0, 1)
const keyring = new Keyring([randomBytes(32)])
const cookie = new SessionCookie({ name: '__Host-gatehouse', secure: true, sameSite: 'lax' })
const begin = (at = began) =>
  beginTransaction({ return_to: '/orders', origin: 'https://orders.example.com', audience: 'orders' }, at)

/** A `Cookie` header out of `Set-Cookie` values, as a browser would make it. */
function cookieHeader(setCookies: readonly string[], jar = new Map<string, string>()): string {
  for (const line of setCookies) {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
    if (/Max-Age=0/.test(line)) jar.delete(name)
    else jar.set(name, value)
  }
  return [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
}

test('a transaction is read from its state', () => {
  const { transaction } = begin()

  assert.deepEqual(transactionFromState(transactionToState(transaction, keyring), keyring), transaction)
})

test('a state shows nothing of the transaction, and no two are alike', () => {
  const { transaction } = begin()
  const [one, two] = [transactionToState(transaction, keyring), transactionToState(transaction, keyring)]

  assert.notEqual(one, two)
  assert.ok(!Buffer.from(one, 'base64url').toString('latin1').includes('orders'))
})

test('a state with any changed byte is rejected', () => {
  const bytes = Buffer.from(transactionToState(begin().transaction, keyring), 'base64url')

  for (let at = 0; at < bytes.length; at += 1) {
    const changed = Buffer.from(bytes)
    changed[at] = (changed[at] ?? 0) ^ 1
    assert.equal(transactionFromState(changed.toString('base64url'), keyring), undefined, `byte ${at}`)
  }
})

test('a state that was cut, extended or invented is rejected', () => {
  const state = transactionToState(begin().transaction, keyring)

  for (const wrong of [
    undefined,
    '',
    state.slice(0, -4),
    state.slice(4),
    `${state}AAAA`,
    `${state}=`,
    ` ${state}`,
    'x',
  ])
    assert.equal(transactionFromState(wrong, keyring), undefined)
})

test('a state of an unknown key is rejected, and one of the previous key is accepted', () => {
  const [old, next] = [randomBytes(32), randomBytes(32)]
  const { transaction } = begin()
  const state = transactionToState(transaction, new Keyring([old]))

  assert.equal(transactionFromState(state, new Keyring([next])), undefined)
  assert.deepEqual(transactionFromState(state, new Keyring([next, old])), transaction)
})

test('a value that was sealed for another purpose is no state', () => {
  const sealed = keyring.seal(JSON.stringify(begin().transaction), 'another purpose').toString('base64url')

  assert.equal(transactionFromState(sealed, keyring), undefined)
})

test('a transaction lasts for 15 minutes', () => {
  const { transaction } = begin()

  assert.equal(isExpired(transaction, began + 15 * 60_000), false)
  assert.equal(isExpired(transaction, began + 15 * 60_000 + 1), true)
})

test('a transaction belongs to the browser that has its cookie', () => {
  const [mine, other] = [begin(), begin()]
  const header = cookieHeader(bindTransaction(mine.transaction, mine.secret, undefined, cookie))
  const otherHeader = cookieHeader(bindTransaction(other.transaction, other.secret, undefined, cookie))

  assert.equal(isBoundTo(mine.transaction, header, cookie), true)
  assert.equal(isBoundTo(mine.transaction, otherHeader, cookie), false)
  assert.equal(isBoundTo(mine.transaction, undefined, cookie), false)
  assert.equal(isBoundTo(mine.transaction, `${header}; ${header}`, cookie), false, 'twice is not at all')
  assert.equal(
    isBoundTo(
      mine.transaction,
      header.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')),
      cookie,
    ),
    false,
  )
  assert.equal(isBoundTo(mine.transaction, header.replace(/=.*/, '='), cookie), false)
})

test('scripts cannot read the cookie of a transaction, and browsers send it to this host only, also after the provider', () => {
  const { transaction, secret } = begin()

  const [line = ''] = bindTransaction(transaction, secret, undefined, cookie)

  assert.match(
    line,
    /^__Host-gatehouse-signin-[\w-]{8}=[\w-]+\.[\w-]{22}; Path=\/; HttpOnly; SameSite=Lax; Secure; Max-Age=900$/,
  )
})

test('when there are many transactions, the oldest ones are expired', () => {
  const jar = new Map<string, string>()
  const attempts = Array.from({ length: 40 }, (_, index) => begin(began + index))
  let header = ''

  for (const { transaction, secret } of attempts)
    header = cookieHeader(bindTransaction(transaction, secret, header, cookie), jar)

  const bound = attempts.map(({ transaction }) => isBoundTo(transaction, header, cookie))
  assert.deepEqual(
    bound,
    attempts.map((_, index) => index >= 24),
  )
})

test('after a sign-in the browser has no transactions left', () => {
  const jar = new Map<string, string>([['theme', 'dark']])
  let header = ''
  for (let index = 0; index < 3; index += 1) {
    const { transaction, secret } = begin()
    header = cookieHeader(bindTransaction(transaction, secret, header, cookie), jar)
  }

  cookieHeader(expireTransactions(header, cookie), jar)

  assert.deepEqual([...jar.keys()], ['theme'])
})

test('invented cookie names reach no header, and the response stays small', () => {
  const odd = Array.from({ length: 500 }, (_, index) => `__Host-gatehouse-signin-${String(index).padStart(8, '0')}=x`)
  const header = ['__Host-gatehouse-signin-a\u0000bcdefg=1', '__Host-gatehouse-signin-=1', ...odd].join('; ')

  const lines = expireTransactions(header, cookie)

  assert.ok(lines.length <= 64, `${lines.length} lines`)
  assert.ok(lines.every((line) => /^__Host-gatehouse-signin-\d{8}=; /.test(line)))
})
