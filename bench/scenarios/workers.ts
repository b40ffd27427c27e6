import { measureInTurn, medianOf, usualLoad, type Round } from '../measure.ts'
import { quietness, table } from '../report.ts'
import { figureOf } from '../rounds.ts'
import type { Stand } from '../stand.ts'
import { cpuByProcess } from '../usage.ts'
import type { Bench, Scenario } from './scenario.ts'

/**
 * Compares two workers with one. All processes share both processors. Clients and upstream use much
 * of the second one, so the requests per second mean little. The processor time of a request, and
 * how evenly the workers share it, show the result on two dedicated processors.
 */
export const workers: Scenario = {
  name: 'workers',
  title: 'Two workers and one, on both processors, which clients and upstream use too; 1 KiB, 64 connections',
  async run(bench) {
    const rows: string[][] = []
    for (const contender of bench.contenders.values()) {
      if (!contender.can.has('workers')) continue
      const one = await bench.stand(contender, { cpus: '0,1', workers: 1, title: `${contender.title}, 1 worker` })
      const two = await bench.stand(contender, { cpus: '0,1', workers: 2, title: `${contender.title}, 2 workers` })
      const { measured, largestShare } = await measurePair(bench, one, two)
      const of = (stand: Stand, figure: keyof Round) => medianOf(measured.get(stand), figure)
      const gain = of(one, 'cpu') / of(two, 'cpu') / largestShare
      const rounds = [one, two].flatMap((stand) => measured.get(stand)?.rounds ?? [])
      bench.facts.set(
        `workers ${contender.name}`,
        figureOf(rounds, () => gain),
      )
      rows.push([
        contender.title,
        of(one, 'requestsPerSecond').toFixed(0),
        of(two, 'requestsPerSecond').toFixed(0),
        of(one, 'cpu').toFixed(1),
        of(two, 'cpu').toFixed(1),
        `${(largestShare * 100).toFixed(0)} %`,
        gain.toFixed(2),
        quietness(rounds),
      ])
      await one.stop()
      await two.stop()
    }
    bench.print(
      table(
        [
          '',
          'requests/s of 1',
          'of 2',
          'CPU µs/request of 1',
          'of 2',
          'share of the busiest',
          'two carry, times one',
          'quiet rounds',
        ],
        rows,
      ),
    )
  },
}

async function measurePair({ bed, plan }: Bench, one: Stand, two: Stand) {
  const load = { ...usualLoad, connections: 64 }
  const before = cpuByProcess(two.pid)
  const measured = await measureInTurn(bed, [one, two], load, plan)
  const used = [...cpuByProcess(two.pid)].map(([pid, cpu]) => cpu - (before.get(pid) ?? 0))
  const all = used.reduce((sum, cpu) => sum + cpu, 0)
  return { measured, largestShare: Math.max(...used) / all }
}
