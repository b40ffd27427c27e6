import { measureInTurn, medianOf, usualLoad } from '../measure.ts'
import { figureOf } from '../rounds.ts'
import type { Stand } from '../stand.ts'
import { measureAll, record, standAll, withRedis } from './requests.ts'
import type { Bench, Scenario } from './scenario.ts'

/** The slowest responses of a round differ much, so more rounds than elsewhere. */
const leastRounds = 10

/**
 * The time to a response when all contenders get the same rate of requests: half of the highest
 * rate of Gatehouse.
 */
export const sameRate: Scenario = {
  name: 'same-rate',
  title: 'Latency at the same rate, half of the maximum of Gatehouse; 1 KiB, 32 connections',
  async run(bench) {
    const stands = await standAll(withRedis(bench))
    const rate = Math.round((await mostOf(bench, stands)) / 2)
    // A contender below this rate would only show a growing queue.
    const able = stands.filter(({ contender }) => (bench.facts.get(`rate ${contender.name}`)?.value ?? Infinity) > rate)
    bench.print(`${rate} requests per second, at even intervals:`)
    const plan = { ...bench.plan, rounds: Math.max(bench.plan.rounds, leastRounds) }
    const measured = await measureAll({ ...bench, plan }, able, { ...usualLoad, rate })
    record(bench, measured, 'p99', 'p99')
    const rounds = (name: string) => [...measured].find(([{ contender }]) => contender.name === name)?.[1].rounds ?? []
    const [ours, nginx] = [rounds('gatehouse-redis'), rounds('nginx')]
    const ratios = ours.map(({ p99 }, round) => p99 / (nginx[round]?.p99 ?? NaN))
    if (nginx.length > 0)
      bench.facts.set('p99 worst gatehouse-redis', { ...figureOf(ours, () => 0), value: Math.max(...ratios) })
  },
}

/** The highest rate of Gatehouse: of this run, or measured now. */
export async function mostOf(
  { bed, plan, facts }: Pick<Bench, 'bed' | 'plan' | 'facts'>,
  stands: readonly Stand[],
): Promise<number> {
  const known = facts.get('rate gatehouse-redis')
  if (known) return known.value
  const ours = stands.find(({ contender }) => contender.name === 'gatehouse-redis')
  if (ours === undefined) throw new Error('the rate is half of that of Gatehouse: gatehouse-redis has to take part')
  const found = await measureInTurn(bed, [ours], usualLoad, { ...plan, rounds: 1 })
  return medianOf(found.get(ours), 'requestsPerSecond')
}
