import { measureInTurn, medianOf, usualLoad } from '../measure.ts'
import { roundsTable } from '../report.ts'
import { standAll } from './requests.ts'
import type { Scenario } from './scenario.ts'

/**
 * The time to a response when all contenders get the same rate of requests: half of the highest
 * rate of Gatehouse.
 */
export const sameRate: Scenario = {
  name: 'same-rate',
  title: 'Latency at the same rate, half of what Gatehouse carries at most; 1 KiB, 32 connections',
  async run(bench) {
    const { bed, plan, print, facts } = bench
    const stands = await standAll(bench)
    const ours = stands.find(({ contender }) => contender.name === 'gatehouse-redis')
    const most = facts.get('rate gatehouse-redis') ?? (ours && (await mostOf(ours)))
    if (most === undefined)
      throw new Error('half of what Gatehouse carries is asked for: gatehouse-redis has to take part')
    const rate = Math.round(most / 2)
    // A contender below this rate would only show a growing queue.
    const able = stands.filter(({ contender }) => (facts.get(`rate ${contender.name}`) ?? Infinity) > rate)
    print(`${rate} requests per second, at even distances; a latency is counted from when the request was due.\n`)
    const measured = await measureInTurn(bed, able, { ...usualLoad, rate }, plan)
    print(`${roundsTable(measured)}\n`)
    for (const [{ contender }, rounds] of measured) facts.set(`p99 ${contender.name}`, medianOf(rounds, 'p99'))

    async function mostOf(stand: (typeof stands)[number]): Promise<number> {
      const found = await measureInTurn(bed, [stand], usualLoad, { ...plan, rounds: 1 })
      return medianOf(found.get(stand), 'requestsPerSecond')
    }
  },
}
