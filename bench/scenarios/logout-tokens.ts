import { Redis } from 'ioredis'
import { request } from 'undici'
import { microsOf, multiplyKeys } from '../redis-figures.ts'
import { conditions, table, withSpread } from '../report.ts'
import { figureOf, runInTurn, startMeter, warmUp, type Disturbed, type WarmUp } from '../rounds.ts'
import type { Stand } from '../stand.ts'
import { exactTreeMicros } from '../usage.ts'
import type { Bench, Scenario } from './scenario.ts'

/** How many sessions are left at least, so that the last round is like the first one. */
const sessions = 1_000
const inARound = 150
const warmUpWindow = { tokens: 100, most: 6, leastCpuSeconds: 0.5 }

export const logoutTokens: Scenario = {
  name: 'logout-tokens',
  title: 'Logout Tokens, one at a time, with 1,000 sessions',
  run: (bench) => measureLogouts(bench, 1),
}

export const logoutTokensOfMany: Scenario = {
  name: 'logout-tokens-many',
  title: 'Logout Tokens, one at a time, with a million sessions in Redis',
  run: (bench) => measureLogouts(bench, 1_000_000),
}

/**
 * A Logout Token (OpenID Connect Back-Channel Logout 1.0 §2.5) until its 200, one at a time, at
 * each contender that accepts them. Each token ends the session of one `sid`, which is then tried.
 */
async function measureLogouts(bench: Bench, stored: number): Promise<void> {
  const { plan, bed, contenders, print } = bench
  const isMany = stored > sessions
  const people = sessions + 2 * plan.rounds * inARound + warmUpWindow.most * warmUpWindow.tokens
  const redis = new Redis(bed.redisPort, '127.0.0.1')
  const crowds: Crowd[] = []
  for (const contender of contenders.values()) {
    if (contender.logoutPath === undefined || (isMany && !contender.name.endsWith('redis'))) continue
    const stand = await bench.stand(contender, { people })
    crowds.push({ stand, left: [...stand.visitors], redis, tokens: bed.provider.logoutToken })
  }
  // The copies take memory and places in Redis like sessions, under names that no contender reads.
  if (isMany) for (const database of [0, 2]) print(await multiplyKeys(redis, database, Math.ceil(stored / people)))
  const warmUps = new Map<Crowd, WarmUp>()
  for (const crowd of crowds) {
    const window = async () => {
      const { cpu } = await endSessions(crowd, warmUpWindow.tokens)
      return { each: cpu, cpuSeconds: (cpu * warmUpWindow.tokens) / 1e6 }
    }
    warmUps.set(crowd, await warmUp(window, warmUpWindow))
  }
  const measured = await runInTurn(crowds, plan, (crowd) => endSessions(crowd, inARound))
  redis.disconnect()
  const rows = [...measured].map(([crowd, rounds]) => {
    const latencies = rounds.flatMap((round) => round.latencies).sort((a, b) => a - b)
    const at = (part: number) => {
      const value = latencies[Math.ceil(latencies.length * part) - 1] ?? NaN
      const fact = `logout p${part * 100} of ${isMany ? 'many' : 'few'} ${crowd.stand.contender.name}`
      bench.facts.set(fact, { ...figureOf(rounds, () => 0), value })
      return value.toFixed(2)
    }
    const of = (figure: 'cpu' | 'redis') => withSpread(rounds.map((round) => round[figure]))
    const under = conditions(rounds, warmUps.get(crowd) as WarmUp)
    return [crowd.stand.title, at(0.5), at(0.99), of('cpu'), of('redis'), under]
  })
  const columns = ['p50 ms', 'p99 ms', 'CPU µs', 'CPU µs of Redis', 'quiet rounds']
  print(table(['', ...columns], rows))
}

/** A contender, and the people whose sessions have not been ended yet. */
interface Crowd {
  readonly stand: Stand
  readonly left: Stand['visitors'][number][]
  readonly redis: Redis
  readonly tokens: Bench['bed']['provider']['logoutToken']
}

interface LogoutRound extends Disturbed {
  /** From the request to the end of the response, in ms. */
  readonly latencies: readonly number[]
  /** The processor time for a Logout Token, in µs: of the contender, and of Redis. */
  readonly cpu: number
  readonly redis: number
}

/** @throws {Error} when a token is rejected, or a session outlives it */
async function endSessions({ stand, left, redis, tokens }: Crowd, count: number): Promise<LogoutRound> {
  const { port, pid } = stand
  const origin = `http://127.0.0.1:${port}`
  const ending = left.splice(0, count)
  const posts = await tokensFor({ stand, left: ending, tokens })
  const latencies: number[] = []
  const [stop, cpu, ofRedis] = [startMeter(pid), exactTreeMicros(pid), await microsOf(redis)]
  for (const logout_token of posts) latencies.push(await postLogoutToken(stand, logout_token))
  const used = { cpu: exactTreeMicros(pid) - cpu, redis: (await microsOf(redis)) - ofRedis }
  const { foreign } = stop()
  for (const { cookie } of ending) {
    const response = await request(`${origin}/bytes/1`, { headers: { cookie } })
    await response.body.dump()
    if (response.statusCode === 200) throw new Error(`${stand.title}: a session outlived its Logout Token`)
  }
  return { latencies, cpu: used.cpu / count, redis: used.redis / count, foreign }
}

/** A Logout Token for the session of each person. */
export function tokensFor({ stand, left, tokens }: Omit<Crowd, 'redis'>): Promise<readonly string[]> {
  const { contender, port } = stand
  return Promise.all(left.map(({ person }) => tokens(`${contender.name}-${port}`, person ?? NaN)))
}

/**
 * Sends a Logout Token.
 * @returns the time from the request to the end of the response, in ms
 * @throws {Error} when the token is rejected
 */
export async function postLogoutToken({ contender, port }: Stand, logout_token: string): Promise<number> {
  const url = `http://127.0.0.1:${port}${contender.logoutPath}`
  const startedAt = performance.now()
  const response = await request(url, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ logout_token }).toString(),
  })
  const text = await response.body.text()
  const ms = performance.now() - startedAt
  if (response.statusCode !== 200) throw new Error(`a Logout Token got ${response.statusCode}: ${text.slice(0, 300)}`)
  return ms
}
