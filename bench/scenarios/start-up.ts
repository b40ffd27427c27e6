import { setTimeout as wait } from 'node:timers/promises'
import { request } from 'undici'
import { freePort } from '../../test/support/free-port.ts'
import type { Contender } from '../contenders/contender.ts'
import { quietness, table, withSpread } from '../report.ts'
import { figureOf, runInTurn, startMeter, type Disturbed } from '../rounds.ts'
import { settingOf } from '../stand.ts'
import { exactTreeMicros, memoryBytes, ownBytes } from '../usage.ts'
import type { Bench, Scenario } from './scenario.ts'

/**
 * The time from the start of the process until it is ready: it has responded to a request, whatever
 * the status, and Gatehouse has also reported that it is ready.
 */
export const startUp: Scenario = {
  name: 'start-up',
  title: 'From start to ready',
  async run(bench) {
    const { contenders, plan, print, facts } = bench
    const all = [...contenders.values()]
    // The first start does not count, because it reads files from the disk.
    for (const contender of all) await startOf(bench, contender)
    const measured = await runInTurn(all, plan, (contender) => startOf(bench, contender))
    const rows = [...measured].map(([contender, rounds]) => {
      const of = (figure: 'ms' | 'cpu') => withSpread(rounds.map((round) => round[figure]))
      facts.set(
        `start ${contender.name}`,
        figureOf(rounds, ({ cpu }) => cpu),
      )
      facts.set(
        `memory ready ${contender.name}`,
        figureOf(rounds, ({ memory }) => memory),
      )
      facts.set(
        `own memory ready ${contender.name}`,
        figureOf(rounds, ({ own }) => own),
      )
      const memory = (figure: 'memory' | 'own') => withSpread(rounds.map((round) => round[figure] / 2 ** 20))
      return [contender.title, of('ms'), of('cpu'), memory('memory'), memory('own'), quietness(rounds)]
    })
    print(table(['', 'ms', 'CPU ms', 'memory MB', 'of its own', 'quiet rounds'], rows))
  },
}

interface Start extends Disturbed {
  readonly ms: number
  /** Processor time in ms. */
  readonly cpu: number
  /** The resident memory when it is ready, in bytes. */
  readonly memory: number
  /** The part of it that belongs to no file, in bytes. */
  readonly own: number
}

async function startOf({ bed, options }: Bench, contender: Contender): Promise<Start> {
  const setting = settingOf(await freePort(), options)
  const stop = startMeter(process.pid)
  const startedAt = performance.now()
  const [running] = await Promise.all([
    contender.start(bed, setting),
    untilItResponds(`http://127.0.0.1:${setting.port}/whoami`),
  ])
  const ms = performance.now() - startedAt
  const { pid } = running
  const start = {
    ms,
    cpu: exactTreeMicros(pid) / 1000,
    memory: memoryBytes(pid),
    own: ownBytes(pid),
    foreign: stop().foreign,
  }
  await running.stop()
  return start
}

/** Sends a request every 2 ms. */
async function untilItResponds(url: string): Promise<void> {
  for (;;) {
    const response = await request(url, { reset: true }).catch(() => undefined)
    if (response !== undefined) return response.body.dump()
    await wait(2)
  }
}
