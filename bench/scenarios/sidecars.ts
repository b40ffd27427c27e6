import { setTimeout as wait } from 'node:timers/promises'
import { freePort } from '../../test/support/free-port.ts'
import type { Listening } from '../contenders/contender.ts'
import type { Line } from '../growth/chart.ts'
import { table } from '../report.ts'
import { settingOf } from '../stand.ts'
import { ownBytes, proportionalBytes } from '../usage.ts'
import { untilIdleMs } from './idle.ts'
import { withRedis } from './requests.ts'
import type { Scenario } from './scenario.ts'

const counts = [1, 10, 50, 100, 200] as const

/** The memory of many sidecars on one machine. */
export const sidecars: Scenario = {
  name: 'sidecars',
  title: 'Many sidecars on one machine',
  async run(bench) {
    const { bed, print, draw, options } = bench
    const heads = ['MiB of each; of its own', ...counts.map((count) => `${count}`)]
    const rows: string[][] = []
    const lines: Line[] = []
    for (const contender of withRedis(bench).contenders.values()) {
      if (!contender.can.has('many-sidecars')) continue
      const running: Listening[] = []
      const cells: string[] = []
      const points: { x: number; y: number }[] = []
      for (const count of counts) {
        while (running.length < count) running.push(await contender.start(bed, settingOf(await freePort(), options)))
        await wait(untilIdleMs)
        const each = (of: (pid: number) => number) =>
          running.reduce((sum, { pid }) => sum + of(pid), 0) / count / 2 ** 20
        const proportional = each(proportionalBytes)
        points.push({ x: count, y: proportional * count })
        cells.push(`${proportional.toFixed(1)}; ${each(ownBytes).toFixed(1)}`)
      }
      await Promise.all(running.map((one) => one.stop()))
      rows.push([contender.title, ...cells])
      lines.push({ name: contender.title.replace(', sessions in Redis', ''), points })
    }
    print(table(heads, rows))
    draw({ title: 'Memory of many sidecars on one machine', xName: 'sidecars', yName: 'MiB together', lines })
    print('Memory is the proportional set: what processes share counts in parts. Its own is what is not of a file.')
  },
}
