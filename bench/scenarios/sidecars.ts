import { freePort } from '../../test/support/free-port.ts'
import type { Listening } from '../contenders/contender.ts'
import { table } from '../report.ts'
import { settingOf } from '../stand.ts'
import { ownBytes, proportionalBytes } from '../usage.ts'
import { withRedis } from './requests.ts'
import type { Scenario } from './scenario.ts'

const counts = [1, 10, 50, 100, 200] as const

/** The memory of many sidecars on one machine. */
export const sidecars: Scenario = {
  name: 'sidecars',
  title: 'Many sidecars on one machine',
  async run(bench) {
    const { bed, print, options } = bench
    const heads = ['MiB of each; of its own', ...counts.map((count) => `${count}`)]
    const rows: string[][] = []
    for (const contender of withRedis(bench).contenders.values()) {
      if (!contender.signsIn) continue
      const running: Listening[] = []
      const cells: string[] = []
      for (const count of counts) {
        while (running.length < count) running.push(await contender.start(bed, settingOf(await freePort(), options)))
        const each = (of: (pid: number) => number) =>
          running.reduce((sum, { pid }) => sum + of(pid), 0) / count / 2 ** 20
        cells.push(`${each(proportionalBytes).toFixed(1)}; ${each(ownBytes).toFixed(1)}`)
      }
      await Promise.all(running.map((one) => one.stop()))
      rows.push([contender.title, ...cells])
    }
    print(table(heads, rows))
    print('Memory is the proportional set: what processes share counts in parts. Its own is what is not of a file.')
  },
}
