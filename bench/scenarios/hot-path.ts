import { measureInTurn, medianOf } from '../measure.ts'
import { roundsTable } from '../report.ts'
import type { Scenario } from './scenario.ts'

/** The scenario that all others are variations of. */
export const hotPath: Scenario = {
  name: 'hot-path',
  title: '1 KiB, 32 connections, one person signed in',
  async run({ bed, plan, contenders, stand, print, facts }) {
    const stands = []
    for (const contender of contenders.values()) stands.push(await stand(contender))
    const measured = await measureInTurn(bed, stands, () => ({ bodyBytes: 1024, connections: 32 }), plan)
    print(roundsTable(measured))
    for (const [{ contender }, rounds] of measured) {
      facts.set(`cpu ${contender.name}`, medianOf(rounds, 'cpu'))
      facts.set(`rate ${contender.name}`, medianOf(rounds, 'requestsPerSecond'))
      facts.set(`memory ${contender.name}`, medianOf(rounds, 'memory'))
    }
  },
}
