import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TokenExchangeConfig } from '../../src/config/model/upstream.ts'
import type { SessionKey } from '../../src/core/names.ts'
import { connectionsFor } from '../../src/provider/outbound.ts'
import { ExchangedTokens } from '../../src/tokens/exchanged-tokens.ts'
import { recorder } from '../session/redis-stores.ts'

function open(exchange: () => Promise<string>) {
  let now = 0
  const tokens = new ExchangedTokens({ clock: { now: () => now }, log: recorder() })
  const exchangeToken = async () => ({ token: await exchange(), expiresAt: now + 100_000 })
  return {
    tokens,
    moveTo: (to: number) => void (now = to),
    ask: async (key = 'jane') =>
      tokens.of(
        { key, audience: '', record: { tokens: { access_token: 'at' } } },
        { name: 'orders' },
        {} as TokenExchangeConfig,
        { exchangeToken },
      ),
  }
}

test('An exchanged token is used until shortly before it expires, and until its session ends', async () => {
  let exchanges = 0
  const { tokens, moveTo, ask } = open(async () => `token ${(exchanges += 1)}`)
  const told = async () => {
    const exchanged = await ask()
    return exchanged.kind === 'token' && exchanged.token
  }

  assert.equal(await told(), 'token 1')
  moveTo(79_999)
  assert.equal(await told(), 'token 1')
  moveTo(80_000)
  assert.equal(await told(), 'token 2')
  tokens.noteEnded(['jane' as SessionKey])
  assert.equal(await told(), 'token 3')
})

test('There is a limit of exchanges at a time, and requests of one session share one', async () => {
  const { promise, resolve } = Promise.withResolvers<string>()
  const { ask } = open(() => promise)
  const first = Array.from({ length: connectionsFor.exchangedTokens }, (_, number) => ask(`session ${number}`))
  const shared = ask('session 0')

  assert.equal((await ask('one more')).kind, 'unavailable')
  resolve('token')
  for (const exchanged of await Promise.all([...first, shared])) assert.equal(exchanged.kind, 'token')
})
