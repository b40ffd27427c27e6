import { setTimeout as wait } from 'node:timers/promises'
import { request } from 'undici'
import { freePort } from '../../test/support/free-port.ts'
import { spread, untilQuiet } from '../measure.ts'
import { table, withSpread } from '../report.ts'
import { settingOf } from '../stand.ts'
import type { Scenario } from './scenario.ts'

/** The time from the start of the process to its first HTTP response, whatever its status. */
export const startUp: Scenario = {
  name: 'start-up',
  title: 'From start to the first answer',
  async run({ bed, contenders, plan, print, facts, options }) {
    const rows: string[][] = []
    for (const contender of contenders.values()) {
      const times: number[] = []
      // The first start does not count, because it reads files from the disk.
      for (let round = -1; round < plan.rounds; round += 1) {
        await untilQuiet(plan.patience)
        const setting = settingOf(await freePort(), options)
        const startedAt = performance.now()
        const starting = contender.start(bed, setting)
        await untilItResponds(`http://127.0.0.1:${setting.port}/whoami`)
        if (round >= 0) times.push(performance.now() - startedAt)
        await (await starting).stop()
      }
      facts.set(`start ${contender.name}`, spread(times).median)
      rows.push([contender.title, withSpread(times)])
    }
    print(table(['', 'ms'], rows))
  },
}

/** Sends a request every 2 ms. */
async function untilItResponds(url: string): Promise<void> {
  for (;;) {
    const response = await request(url, { reset: true }).catch(() => undefined)
    if (response !== undefined) return response.body.dump()
    await wait(2)
  }
}
