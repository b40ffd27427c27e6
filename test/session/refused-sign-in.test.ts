import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Keyring } from '../../src/core/seal.ts'
import { RefusedSignIns } from '../../src/session/cookies/gateway-cookies.ts'

function refusedSignIns() {
  return new RefusedSignIns({
    cookie: { withSuffix: (suffix) => ({ name: `gatehouse-${suffix}`, secure: true, sameSite: 'lax' }) },
    keyring: new Keyring([Buffer.alloc(32, 1)]),
    audience: 'orders',
    clock: { now: () => 0 },
    store: { takeOnce: async () => true },
  })
}

for (const [character, length] of [
  ['a', 1_020],
  ['"', 1_020],
  ['語', 255],
] as const)
  test(`A browser keeps the proof of a person with a long name: ${length} times ${character}`, () => {
    const signIns = refusedSignIns()
    const person = { sub: character.repeat(length), sid: character.repeat(1_020) }

    const { refused, setCookie } = signIns.prove(person)

    const [cookie = ''] = setCookie.split(';')
    // RFC 6265bis §5.6: a browser ignores a longer cookie.
    assert.ok(cookie.length <= 4_096, `${cookie.length} characters`)
    const { sub, secret } = signIns.read(cookie) ?? assert.fail('the proof is not accepted')
    assert.deepEqual([sub, secret], [person.sub, refused.secret])
  })
