import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { NotRevokedError } from '../../src/provider/provider-errors.ts'
import { type EndedToken, Revocations } from '../../src/tokens/revocations.ts'
import { replacePauses } from '../support/pauses.ts'
import { until } from '../support/until.ts'

const ended = (token: string, expiresAt?: number): EndedToken => ({
  ...{ token, expiresAt, upstream: 'orders' },
  person: { iss: 'id', sub: 'jane' },
})
const many = (count: number) => Array.from({ length: count }, (_, number) => ended(`token ${number}`))

type Revoke = (token: string, attempt: number) => Promise<'revoked' | 'unsupported'>

function start(t: TestContext, revoke: Revoke | undefined, retryRevocationsMs = 1) {
  replacePauses(t, { retryRevocationsMs })
  let now = 0
  let [underWay, most] = [0, 0]
  const asked: string[] = []
  const recorded: string[] = []
  const provider = revoke && {
    revoke: async (token: string) => {
      asked.push(token)
      most = Math.max(most, (underWay += 1))
      try {
        return await revoke(token, asked.filter((one) => one === token).length)
      } finally {
        underWay -= 1
      }
    },
  }
  const revocations = new Revocations({
    ...{ provider: () => provider, clock: { now: () => now } },
    audit: { record: (_event, fields) => void recorded.push((fields as { readonly outcome: string }).outcome) },
  })
  return { revocations, asked, recorded, most: () => most, pass: (ms: number) => void (now += ms) }
}

const away = () => Promise.reject(new Error('unreachable'))
const never = new Promise<never>(() => {})

test('Many tokens are revoked a few at a time, each once', async (t) => {
  const { revocations, asked, recorded, most } = start(t, async () => 'revoked')

  revocations.add(many(50))
  await until('all are recorded', () => recorded.length === 50)

  assert.equal(new Set(asked).size, 50)
  assert.deepEqual([asked.length, most()], [50, 8])
})

test('A token that fails delays no other one for long, and is dropped', async (t) => {
  const { revocations, asked, recorded } = start(t, async (token) => (token === 'token 0' ? away() : 'revoked'))

  revocations.add(many(20))
  await until('all are recorded', () => recorded.length === 20)

  assert.deepEqual([asked.length, recorded.at(-1)], [23, 'unreachable'])
})

test('A provider is asked again after the pause that it requests', async (t) => {
  const wishes = new Response(null, { status: 503, headers: { 'retry-after': '600' } })
  const { revocations, asked, recorded } = start(t, () =>
    Promise.reject(new NotRevokedError(new Error('503', { cause: wishes }))),
  )

  revocations.add(many(1))
  await until('it was asked', () => asked.length === 1)
  revocations.add([ended('another')])
  const other = start(t, away)
  other.revocations.add(many(1))
  await until('another provider was asked again and again', () => other.recorded.length > 0)

  assert.deepEqual([asked, recorded], [['token 0'], []])
  await revocations.finish(never)
  assert.deepEqual(asked.toSorted(), ['another', 'token 0', 'token 0'])
})

test('A token that has expired meanwhile is not revoked', async (t) => {
  const { revocations, asked, recorded, pass } = start(t, async (_token, attempt) => {
    if (attempt > 1) return 'revoked'
    pass(1000)
    return away()
  })

  revocations.add([ended('short', 1000)])
  await until('it is recorded', () => recorded.length > 0)

  assert.deepEqual([asked, recorded], [['short'], ['expired']])
})

test('Tokens of a provider that the configuration does not have any more are unsupported', async (t) => {
  const { revocations, recorded } = start(t, undefined)

  revocations.add(many(1))
  await until('it is recorded', () => recorded.length > 0)

  assert.deepEqual(recorded, ['unsupported'])
})

test('Beyond a limit, further tokens are not revoked', async (t) => {
  const { revocations, recorded } = start(t, () => never)

  revocations.add(many(10_003))

  assert.deepEqual(recorded, ['not_asked', 'not_asked', 'not_asked'])
})

test('At the end, each waiting token is tried once more, and the others are recorded', async (t) => {
  const { revocations, asked, recorded } = start(t, away)
  await revocations.finish(never)
  revocations.add(many(1))
  assert.deepEqual([asked, recorded], [[], ['not_asked']])

  const failing = start(t, away, 60_000)
  failing.revocations.add(many(10))
  await until('some were tried', () => failing.asked.length === 8)
  await failing.revocations.finish(never)
  assert.deepEqual([failing.asked.length, failing.recorded], [18, Array(10).fill('unreachable')])

  const hanging = start(t, () => never)
  hanging.revocations.add(many(10))
  await until('some are under way', () => hanging.asked.length > 0)
  await hanging.revocations.finish(Promise.resolve())
  assert.deepEqual([hanging.asked.length, hanging.recorded], [8, ['not_asked', 'not_asked']])
})

test('At the end, a token whose attempt is under way is tried once more', async (t) => {
  const first = Promise.withResolvers<'revoked'>()
  const { revocations, asked, recorded } = start(t, async (_token, attempt) =>
    attempt === 1 ? first.promise : 'revoked',
  )
  revocations.add([ended('token')])
  await until('the attempt is under way', () => asked.length === 1)

  const finished = revocations.finish(never)
  first.reject(new Error('the provider is busy'))
  await finished

  assert.deepEqual([asked, recorded], [['token', 'token'], ['revoked']])
})

test('After a success, the pauses are short again', async (t) => {
  const { revocations, recorded } = start(t, async (_token, attempt) => (attempt % 2 === 1 ? away() : 'revoked'))

  for (let round = 1; round <= 20; round += 1) {
    revocations.add(many(1))
    await until('it is revoked', () => recorded.length === round)
  }

  assert.deepEqual(recorded, Array(20).fill('revoked'))
})
