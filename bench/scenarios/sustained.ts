import { usualLoad } from '../measure.ts'
import { table } from '../report.ts'
import { spread } from '../rounds.ts'
import { memoryBytes, ownBytes } from '../usage.ts'
import type { Scenario } from './scenario.ts'

/** An hour at a thousand requests per second. */
const requests = 3_600_000
const connections = 64
const people = 100

/**
 * Whether memory grows. Sends as many requests as an hour has at a thousand per second, each one
 * after the previous response.
 */
export const sustained: Scenario = {
  name: 'sustained',
  title: 'Memory under the requests of an hour at 1,000 per second',
  async run({ bed, contenders, stand, print }) {
    const contender = contenders.get('gatehouse-redis')
    if (contender === undefined) throw new Error('gatehouse-redis has to take part')
    const { port, tls, visitors, pid } = await stand(contender, { people })
    const order = { ...usualLoad, port, tls, visitors, connections, ms: 5_000 }
    const warm = await bed.load(order)
    const samples: number[] = []
    let done = 0
    const startedAt = performance.now()
    const roundMs = 2_000
    while (done < requests) {
      done += (await bed.load({ ...order, ms: roundMs })).count
      samples.push(memoryBytes(pid))
    }
    const minutes = (performance.now() - startedAt) / 60_000
    const fifth = Math.ceil(samples.length / 5)
    const of = (part: number) => spread(samples.slice(part * fifth, (part + 1) * fifth)).median / 2 ** 20
    print(
      `${((done + warm.count) / 1e6).toFixed(1)} million requests in ${minutes.toFixed(1)} minutes, ${people} people, ${connections} connections, opened anew every ${roundMs / 1000} s.`,
    )
    const names = ['first fifth', 'second', 'third', 'fourth', 'last']
    print(table(['resident memory, MB', ...names], [['median', ...names.map((_, part) => of(part).toFixed(0))]]))
    print(`Of its own (not of a file) at the end: ${(ownBytes(pid) / 2 ** 20).toFixed(0)} MB.`)
  },
}
