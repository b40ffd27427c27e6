import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { Keyring } from '../../src/core/seal.ts'
import { SessionCookie } from '../../src/session/cookie.ts'
import {
  attemptFromState,
  attemptToState,
  beginAttempt,
  forgetAttempts,
  isBoundTo,
  isExpired,
  rememberAttempt,
} from '../../src/signin/attempt.ts'

const began = Date.UTC(2026, 0, 1)
const keyring = new Keyring([randomBytes(32)])
const cookie = new SessionCookie({ name: '__Host-gatehouse', secure: true, sameSite: 'lax' })
const begin = (at = began) =>
  beginAttempt({ return_to: '/orders', origin: 'https://orders.example.com', audience: 'orders' }, at)

/** A `Cookie` header out of `Set-Cookie` values, as a browser would make it. */
function cookieHeader(setCookies: readonly string[], jar = new Map<string, string>()): string {
  for (const line of setCookies) {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
    if (/Max-Age=0/.test(line)) jar.delete(name)
    else jar.set(name, value)
  }
  return [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
}

test('an attempt comes back out of its state', () => {
  const { attempt } = begin()

  assert.deepEqual(attemptFromState(attemptToState(attempt, keyring), keyring), attempt)
})

test('a state shows nothing of the attempt, and no two are alike', () => {
  const { attempt } = begin()
  const [one, two] = [attemptToState(attempt, keyring), attemptToState(attempt, keyring)]

  assert.notEqual(one, two)
  assert.ok(!Buffer.from(one, 'base64url').toString('latin1').includes('orders'))
})

test('a state in which any byte was changed is none of ours', () => {
  const bytes = Buffer.from(attemptToState(begin().attempt, keyring), 'base64url')

  for (let at = 0; at < bytes.length; at += 1) {
    const changed = Buffer.from(bytes)
    changed[at] = (changed[at] ?? 0) ^ 1
    assert.equal(attemptFromState(changed.toString('base64url'), keyring), undefined, `byte ${at}`)
  }
})

test('a state that was cut off, prolonged or made up is none of ours', () => {
  const state = attemptToState(begin().attempt, keyring)

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
    assert.equal(attemptFromState(wrong, keyring), undefined)
})

test('a state that another key has sealed is none of ours, and one of the key before is', () => {
  const [old, next] = [randomBytes(32), randomBytes(32)]
  const { attempt } = begin()
  const state = attemptToState(attempt, new Keyring([old]))

  assert.equal(attemptFromState(state, new Keyring([next])), undefined)
  assert.deepEqual(attemptFromState(state, new Keyring([next, old])), attempt)
})

test('what was sealed for another purpose is no state', () => {
  const sealed = keyring.seal(JSON.stringify(begin().attempt), 'another purpose').toString('base64url')

  assert.equal(attemptFromState(sealed, keyring), undefined)
})

test('an attempt lasts for a quarter of an hour', () => {
  const { attempt } = begin()

  assert.equal(isExpired(attempt, began + 15 * 60_000), false)
  assert.equal(isExpired(attempt, began + 15 * 60_000 + 1), true)
})

test('an attempt belongs to the browser that has its cookie', () => {
  const [mine, other] = [begin(), begin()]
  const header = cookieHeader(rememberAttempt(mine.attempt, mine.secret, undefined, cookie))
  const otherHeader = cookieHeader(rememberAttempt(other.attempt, other.secret, undefined, cookie))

  assert.equal(isBoundTo(mine.attempt, header, cookie), true)
  assert.equal(isBoundTo(mine.attempt, otherHeader, cookie), false)
  assert.equal(isBoundTo(mine.attempt, undefined, cookie), false)
  assert.equal(isBoundTo(mine.attempt, `${header}; ${header}`, cookie), false, 'twice is not at all')
  assert.equal(
    isBoundTo(
      mine.attempt,
      header.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')),
      cookie,
    ),
    false,
  )
  assert.equal(isBoundTo(mine.attempt, header.replace(/=.*/, '='), cookie), false)
})

test('the cookie of an attempt cannot be read by scripts, travels to this host only, and comes back from the provider', () => {
  const { attempt, secret } = begin()

  const [line = ''] = rememberAttempt(attempt, secret, undefined, cookie)

  assert.match(
    line,
    /^__Host-gatehouse-signin-[\w-]{8}=[\w-]+\.[\w-]{22}; Path=\/; HttpOnly; SameSite=Lax; Secure; Max-Age=900$/,
  )
})

test('of many attempts the oldest are forgotten', () => {
  const jar = new Map<string, string>()
  const attempts = Array.from({ length: 40 }, (_, index) => begin(began + index))
  let header = ''

  for (const { attempt, secret } of attempts)
    header = cookieHeader(rememberAttempt(attempt, secret, header, cookie), jar)

  const bound = attempts.map(({ attempt }) => isBoundTo(attempt, header, cookie))
  assert.deepEqual(
    bound,
    attempts.map((_, index) => index >= 24),
  )
})

test('a browser that is signed in has no attempts left', () => {
  const jar = new Map<string, string>([['theme', 'dark']])
  let header = ''
  for (let index = 0; index < 3; index += 1) {
    const { attempt, secret } = begin()
    header = cookieHeader(rememberAttempt(attempt, secret, header, cookie), jar)
  }

  cookieHeader(forgetAttempts(header, cookie), jar)

  assert.deepEqual([...jar.keys()], ['theme'])
})

test('names that a browser makes up get into no header, and cost no endless answer', () => {
  const odd = Array.from({ length: 500 }, (_, index) => `__Host-gatehouse-signin-${String(index).padStart(8, '0')}=x`)
  const header = ['__Host-gatehouse-signin-a\u0000bcdefg=1', '__Host-gatehouse-signin-=1', ...odd].join('; ')

  const lines = forgetAttempts(header, cookie)

  assert.ok(lines.length <= 64, `${lines.length} lines`)
  assert.ok(lines.every((line) => /^__Host-gatehouse-signin-\d{8}=; /.test(line)))
})
