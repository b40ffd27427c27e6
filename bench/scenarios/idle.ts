import { setTimeout as wait } from 'node:timers/promises'
import { freePort } from '../../test/support/free-port.ts'
import type { Contender, Listening } from '../contenders/contender.ts'
import { quietness, table, withSpread } from '../report.ts'
import { type Disturbed, figureOf, startMeter } from '../rounds.ts'
import { settingOf } from '../stand.ts'
import { exactTreeMicros, proportionalBytes, waits } from '../usage.ts'
import type { Bench, Scenario } from './scenario.ts'

/** A gateway counts as idle when it had no request for this long, in ms. */
export const untilIdleMs = 20_000
/** How many sidecars one machine has besides. */
const sidecars = 20

/**
 * Gateways without requests, at the same time: what each of them costs by itself, and how much
 * memory a further one takes on a machine that has many.
 */
export const idle: Scenario = {
  name: 'idle',
  title: 'An idle sidecar',
  async run(bench) {
    const { contenders, plan, print, draw, facts } = bench
    const rows: string[][] = []
    const bars: { name: string; cpu: number; memory: number }[] = []
    for (const contender of contenders.values()) {
      if (!contender.signsIn) continue
      const first = await startOne(bench, contender)
      await wait(untilIdleMs)
      const rounds = []
      for (let round = 0; round < plan.rounds; round += 1)
        rounds.push(await usedWithin(first.pid, plan.seconds * 5_000))
      facts.set(
        `idle wakes ${contender.name}`,
        figureOf(rounds, ({ wakes }) => wakes),
      )
      facts.set(
        `idle cpu ${contender.name}`,
        figureOf(rounds, ({ usedMs }) => usedMs),
      )
      const alone = proportionalBytes(first.pid)
      const others: Listening[] = []
      while (others.length < sidecars) others.push(await startOne(bench, contender))
      await wait(untilIdleMs)
      const all = [first, ...others].reduce((sum, { pid }) => sum + proportionalBytes(pid), 0)
      await Promise.all([first, ...others].map((each) => each.stop()))
      bars.push({
        name: contender.title,
        cpu: figureOf(rounds, ({ usedMs }) => usedMs).value,
        memory: all / (sidecars + 1) / 2 ** 20,
      })
      const mib = (bytes: number) => (bytes / 2 ** 20).toFixed(1)
      rows.push([
        contender.title,
        withSpread(rounds.map(({ wakes }) => wakes)),
        withSpread(rounds.map(({ usedMs }) => usedMs)),
        mib(alone),
        mib(all / (sidecars + 1)),
        quietness(rounds),
      ])
    }
    const heads = [
      '',
      'wake-ups a minute',
      'CPU ms a minute',
      'memory MiB, alone',
      `each of ${sidecars + 1}`,
      'quiet rounds',
    ]
    print(table(heads, rows))
    const group = (name: string, of: 'cpu' | 'memory') => ({
      name,
      bars: bars.map((each) => ({ name: each.name, value: each[of] })),
    })
    draw({
      title: 'A gateway without requests',
      groups: [group('CPU ms a minute', 'cpu'), group(`memory MiB, each of ${sidecars + 1}`, 'memory')],
    })
    print('Memory is the proportional set: what processes share counts in parts.')
  },
}

async function startOne({ bed, options }: Bench, contender: Contender): Promise<Listening> {
  return contender.start(bed, settingOf(await freePort(), options))
}

interface IdleRound extends Disturbed {
  readonly wakes: number
  /** Processor time in ms. */
  readonly usedMs: number
}

/** What a process does in a minute, from a measurement of this length. */
async function usedWithin(pid: number, ms: number): Promise<IdleRound> {
  const stop = startMeter(pid)
  const read = () => ({ at: performance.now(), waits: waits(pid), micros: exactTreeMicros(pid) })
  const before = read()
  await wait(ms)
  const after = read()
  const minutes = (after.at - before.at) / 60_000
  return {
    wakes: (after.waits - before.waits) / minutes,
    usedMs: (after.micros - before.micros) / 1000 / minutes,
    foreign: stop().foreign,
  }
}
