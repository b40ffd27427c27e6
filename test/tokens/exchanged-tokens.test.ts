import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TokenExchangeConfig } from '../../src/config/model/upstream.ts'
import { GatewayError } from '../../src/core/errors.ts'
import type { SessionKey } from '../../src/core/names.ts'
import { connectionsFor } from '../../src/provider/outbound.ts'
import { type Exchanged, ExchangedTokens } from '../../src/tokens/exchanged-tokens.ts'
import { recorder } from '../session/redis-stores.ts'
import { until } from '../support/until.ts'

interface Options {
  readonly isRenewed?: () => Promise<boolean>
  /** In ms. Absent: the provider does not say it. */
  readonly lifetimeMs?: number | undefined
}

function open(exchange: () => Promise<string>, options: Options = {}) {
  const { isRenewed = async () => false } = options
  const lifetimeMs = 'lifetimeMs' in options ? options.lifetimeMs : 100_000
  let now = 0
  const revoked: (readonly [audience: string, token: string, upstream: string])[] = []
  const tokens = new ExchangedTokens({
    ...{ clock: { now: () => now }, log: recorder(), isRenewed },
    revoke: (audience, ended) =>
      revoked.push(...ended.map(({ token, upstream }) => [audience, token, upstream] as const)),
  })
  const exchangeToken = async () => ({
    token: await exchange(),
    expiresAt: lifetimeMs === undefined ? undefined : now + lifetimeMs,
  })
  return {
    ...{ tokens, revoked },
    moveTo: (to: number) => void (now = to),
    ask: async (key = 'jane', { hasEnded, upstream = 'orders', scopes = [], audience = 'id' }: Asked = {}) => {
      const record = { iss: 'id', sub: 'jane', tokens: { access_token: 'at' } }
      const wanted: TokenExchangeConfig = {
        audience: upstream,
        resource: undefined,
        scopes,
        requestedTokenType: undefined,
      }
      const subject = { key, audience, record, ...(hasEnded && { hasEnded }) }
      return tokens.of(subject, { name: upstream }, wanted, { exchangeToken })
    },
  }
}

interface Asked {
  readonly hasEnded?: () => boolean
  readonly upstream?: string
  readonly scopes?: readonly string[]
  readonly audience?: string
}

/** The end of all that follows an ending. */
const settled = () => new Promise(setImmediate)
const janes = ['jane' as SessionKey]
const counting = () => {
  let count = 0
  return async () => `token ${(count += 1)}`
}
const textOf = (exchanged: Exchanged) => (exchanged.kind === 'token' ? exchanged.token : exchanged.why)

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
  assert.equal(await told(), false)
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

test('When a session ends, all its tokens are revoked, and those of no other session', async () => {
  const { tokens, revoked, ask } = open(counting())
  await ask('jane')
  await ask('jane', { upstream: 'bills' })
  await ask('jane', { scopes: ['write'] })
  await ask('john')

  tokens.noteEnded(janes)
  tokens.noteEnded(janes)
  await settled()

  assert.deepEqual(revoked, [
    ['id', 'token 1', 'orders'],
    ['id', 'token 2', 'bills'],
    ['id', 'token 3', 'orders'],
  ])
})

test('Tokens of one audience are not used for another one', async () => {
  const { ask } = open(counting())

  assert.equal(textOf(await ask('jane')), 'token 1')
  assert.equal(textOf(await ask('jane', { audience: 'another client' })), 'token 2')
})

test('A token that would be renewed now, or was never issued, is not revoked', async () => {
  const { tokens, revoked, ask, moveTo } = open(counting())
  await ask()
  moveTo(80_000)
  tokens.noteEnded(janes)
  await settled()
  assert.deepEqual(revoked, [])

  const refused = open(() => Promise.reject(new GatewayError('ERR_TOKEN_EXCHANGE', 'no')))
  await refused.ask()
  refused.tokens.noteEnded(janes)
  await settled()
  assert.deepEqual(refused.revoked, [])
})

test('A token without expires_in is revoked also when it is not used any more', async () => {
  const { tokens, revoked, ask, moveTo } = open(counting(), { lifetimeMs: undefined })
  await ask()

  moveTo(3_600_000)
  tokens.noteEnded(janes)
  await settled()

  assert.deepEqual(revoked, [['id', 'token 1', 'orders']])
})

for (const [what, isRenewed, count] of [
  ['has signed in again in the same browser: not revoked', async () => true, 0],
  ['may have signed in again: revoked', () => Promise.reject(new Error('the store is away')), 1],
] as const)
  test(`The tokens of a session whose person ${what}`, async () => {
    const { tokens, revoked, ask } = open(counting(), { isRenewed })
    await ask()

    tokens.noteEnded(janes)
    await settled()

    assert.equal(revoked.length, count)
    // A request with the ended session may still be under way.
    assert.match(textOf(await ask()), /has ended during the exchange/)
  })

test('A token that arrives after the end of its session is revoked, and no application gets it', async () => {
  const { promise, resolve } = Promise.withResolvers<string>()
  const { tokens, revoked, ask } = open(() => promise)
  const asked = ask()

  tokens.noteEnded(janes)
  resolve('late')

  const exchanged = await asked
  // The provider is not to blame.
  assert.equal(exchanged.kind === 'unavailable' && exchanged.code, 'ERR_UNAUTHENTICATED')
  assert.match(textOf(exchanged), /has ended during the exchange/)
  await settled()
  assert.deepEqual(revoked, [['id', 'late', 'orders']])
})

test('A token that arrives after a renewal of its session is not revoked, and no application gets it', async () => {
  const { promise, resolve } = Promise.withResolvers<string>()
  const { tokens, revoked, ask } = open(() => promise, { isRenewed: async () => true })
  const asked = ask()

  tokens.noteEnded(janes)
  resolve('late')

  assert.match(textOf(await asked), /has ended during the exchange/)
  await settled()
  assert.deepEqual(revoked, [])
})

test('When an access token ends, its tokens are revoked: at the next look, or with its next request', async () => {
  const { tokens, revoked, ask } = open(counting())
  const ended = new Set<string>()
  const subject = (key: string) => ({ hasEnded: () => ended.has(key) })
  for (const key of ['one', 'two', 'three']) await ask(key, subject(key))

  ended.add('one')
  tokens.endOver()
  await until('revoked', () => revoked.length > 0)
  ended.add('two')
  // The provider was asked, and says that the access token is active.
  assert.equal(textOf(await ask('two')), 'token 4')
  await settled()

  assert.deepEqual(
    revoked.map(([, token]) => token),
    ['token 1', 'token 2'],
  )
})

test('A token that arrives after the end of its access token is revoked', async () => {
  const { promise, resolve } = Promise.withResolvers<string>()
  const { revoked, ask } = open(() => promise)
  let hasEnded = false
  const asked = ask('agent', { hasEnded: () => hasEnded })

  hasEnded = true
  resolve('late')

  assert.match(textOf(await asked), /has ended during the exchange/)
  assert.deepEqual(revoked, [['id', 'late', 'orders']])
})
