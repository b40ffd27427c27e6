import type { Contender } from '../contenders/contender.ts'
import { measureInTurn, medianOf, usualLoad } from '../measure.ts'
import { limitProcessors } from '../processor-share.ts'
import { table } from '../report.ts'
import type { Stand } from '../stand.ts'
import { cpuByProcess } from '../usage.ts'
import type { Bench, Scenario } from './scenario.ts'

/**
 * The share of a processor that each worker has. It leaves enough for clients and upstream when two
 * workers are under full load.
 */
const share = 0.3

/**
 * Compares two workers with one. Each worker may use a fixed share of a processor, so that all of
 * them are under full load while clients and upstream are not.
 */
export const workers: Scenario = {
  name: 'workers',
  title: `Two workers and one, each limited to ${share * 100} % of a processor; 1 KiB, 64 connections`,
  async run(bench) {
    const rows: string[][] = []
    for (const contender of bench.contenders.values())
      if (contender.can.has('workers')) rows.push(await rowOf(bench, contender))
    const head = [
      '',
      'requests/s of 1',
      'of 2',
      'CPU µs/request of 1',
      'of 2',
      'most of it in one worker',
      'two, times one',
    ]
    bench.print(table(head, rows))
  },
}

async function rowOf(bench: Bench, contender: Contender): Promise<string[]> {
  const stands = { one: await limited(bench, contender, 1), two: await limited(bench, contender, 2) }
  const [one, two] = [stands.one.stand, stands.two.stand]
  const before = cpuByProcess(two.pid)
  const measured = await measureInTurn(bench.bed, [one, two], { ...usualLoad, connections: 64 }, bench.plan)
  const used = [...cpuByProcess(two.pid)].map(([pid, cpu]) => cpu - (before.get(pid) ?? 0))
  const largestShare = Math.max(...used) / used.reduce((sum, cpu) => sum + cpu, 0)
  const of = (stand: Stand, figure: 'cpu' | 'requestsPerSecond' | 'memory') => medianOf(measured.get(stand), figure)
  const gain = of(two, 'requestsPerSecond') / of(one, 'requestsPerSecond')
  bench.facts.set(`workers ${contender.name}`, gain)
  bench.facts.set(`workers memory ${contender.name}`, of(two, 'memory'))
  await stands.one.stop()
  await stands.two.stop()
  return [
    contender.title,
    of(one, 'requestsPerSecond').toFixed(0),
    of(two, 'requestsPerSecond').toFixed(0),
    of(one, 'cpu').toFixed(1),
    of(two, 'cpu').toFixed(1),
    `${(largestShare * 100).toFixed(0)} %`,
    gain.toFixed(2),
  ]
}

async function limited(bench: Bench, contender: Contender, count: number) {
  const title = `${contender.title}, ${count === 1 ? '1 worker' : `${count} workers`}`
  const stand = await bench.stand(contender, { cpus: '0,1', workers: count, title })
  const unlimited = limitProcessors(stand.pid, share)
  const stop = async () => {
    await stand.stop()
    unlimited()
  }
  return { stand, stop }
}
