import type { Contender } from '../contenders/contender.ts'
import { canLimit, limitEach } from '../cpu-quota.ts'
import { measureInTurn, medianOf, usualLoad, type Round } from '../measure.ts'
import { quietness, table } from '../report.ts'
import { figureOf } from '../rounds.ts'
import type { Stand } from '../stand.ts'
import { cpuByProcess } from '../usage.ts'
import type { Bench, Scenario } from './scenario.ts'

/**
 * The share of a processor that each worker may use, so that two workers, clients and upstream fit
 * on two processors.
 */
const share = 0.3

/**
 * Compares two workers with one. Clients and upstream need much of two processors, so two workers
 * cannot use both. Each worker therefore gets a share of a processor, and the requests per second
 * are those of one share and of two. Without the right to limit processes, the gain is calculated
 * from the processor time of a request and how evenly the workers share it.
 */
export const workers: Scenario = {
  name: 'workers',
  title: 'Two workers and one; 1 KiB, 64 connections',
  async run(bench) {
    const rows: string[][] = []
    for (const contender of bench.contenders.values())
      if (contender.can.has('workers')) rows.push(await compare(bench, contender))
    bench.print(canLimit() ? `Each worker may use ${share * 100} % of a processor.` : 'The gain is calculated.')
    const columns = ['requests/s of 1', 'of 2', 'CPU µs/request of 1', 'of 2', 'share of the busiest', 'gain']
    bench.print(table(['', ...columns, 'quiet rounds'], rows))
  },
}

async function compare(bench: Bench, contender: Contender): Promise<string[]> {
  const one = await bench.stand(contender, { cpus: '0,1', workers: 1, title: `${contender.title}, 1 worker` })
  const two = await bench.stand(contender, { cpus: '0,1', workers: 2, title: `${contender.title}, 2 workers` })
  const releases = canLimit() ? [one, two].map(({ pid }) => limitEach(pid, share)) : []
  try {
    const { measured, largestShare } = await measurePair(bench, one, two)
    const of = (stand: Stand, figure: keyof Round) => medianOf(measured.get(stand), figure)
    const gain = canLimit()
      ? of(two, 'requestsPerSecond') / of(one, 'requestsPerSecond')
      : of(one, 'cpu') / of(two, 'cpu') / largestShare
    const rounds = [one, two].flatMap((stand) => measured.get(stand)?.rounds ?? [])
    const figure = figureOf(rounds, () => gain)
    bench.facts.set(`workers ${contender.name}`, canLimit() ? figure : { ...figure, isCalculated: true })
    return [
      contender.title,
      of(one, 'requestsPerSecond').toFixed(0),
      of(two, 'requestsPerSecond').toFixed(0),
      of(one, 'cpu').toFixed(1),
      of(two, 'cpu').toFixed(1),
      `${(largestShare * 100).toFixed(0)} %`,
      gain.toFixed(2),
      quietness(rounds),
    ]
  } finally {
    await one.stop()
    await two.stop()
    for (const release of releases) release()
  }
}

async function measurePair({ bed, plan }: Bench, one: Stand, two: Stand) {
  const load = { ...usualLoad, connections: 64 }
  const before = cpuByProcess(two.pid)
  const measured = await measureInTurn(bed, [one, two], load, plan)
  const used = [...cpuByProcess(two.pid)].map(([pid, cpu]) => cpu - (before.get(pid) ?? 0))
  const all = used.reduce((sum, cpu) => sum + cpu, 0)
  return { measured, largestShare: Math.max(...used) / all }
}
