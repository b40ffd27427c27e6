import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { usualLoad } from '../measure.ts'
import { quietness, table } from '../report.ts'
import { figureOf, isQuiet, runInTurn, startMeter, type Disturbed } from '../rounds.ts'
import { mostOf } from './same-rate.ts'
import type { Scenario } from './scenario.ts'

const leastRounds = 10
const roundMs = 5_000

/** The longest pause of the main thread at half load: all requests wait while it lasts. */
export const pauses: Scenario = {
  name: 'pauses',
  title: 'The longest pauses at half load',
  async run(bench) {
    const { bed, contenders, print, facts } = bench
    const contender = contenders.get('gatehouse-redis')
    if (contender === undefined) throw new Error('gatehouse-redis has to take part')
    const file = join(bed.folder, 'pauses')
    const watch = new URL('../pause-watch.mjs', import.meta.url)
    watch.searchParams.set('file', file)
    const stand = await bench.stand(contender, { nodeOptions: ['--import', watch.href] })
    const rate = Math.round((await mostOf(bench, [stand])) / 2)
    const { port, tls, visitors } = stand
    const load = (ms: number) => bed.load({ ...usualLoad, port, tls, visitors, rate, ms })
    await load(roundMs)
    const plan = { ...bench.plan, rounds: Math.max(bench.plan.rounds, leastRounds) }
    const measured = await runInTurn([stand], plan, async () => {
      const stop = startMeter(stand.pid)
      const from = Date.now() + 250
      await load(roundMs)
      const { foreign } = stop()
      return { ...longestSince(file, from), foreign }
    })
    const rounds = measured.get(stand) ?? []
    const quiet = rounds.filter(isQuiet)
    const of = (each: readonly PausesRound[], figure: 'pause' | 'collection') =>
      each.map((round) => round[figure].toFixed(0)).join(', ') || '—'
    print(`${rate} requests per second, ${rounds.length} rounds of ${roundMs / 1000} s; the longest of each, in ms:`)
    print(
      table(
        ['', 'of all rounds', 'of the quiet rounds'],
        [
          ['pause of the main thread', of(rounds, 'pause'), of(quiet, 'pause')],
          ['collection of garbage', of(rounds, 'collection'), of(quiet, 'collection')],
        ],
      ),
    )
    print(`Quiet rounds: ${quietness(rounds)}.`)
    facts.set('pause worst gatehouse-redis', {
      ...figureOf(rounds, () => 0),
      value: Math.max(...rounds.map(({ pause }) => pause)),
    })
  },
}

interface PausesRound extends Disturbed {
  /** In ms. */
  readonly pause: number
  readonly collection: number
}

function longestSince(file: string, from: number): Omit<PausesRound, 'foreign'> {
  const rows = readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => line.split(' ').map(Number) as [number, number, number])
  const since = rows.filter(([at]) => at > from)
  return { pause: Math.max(...since.map(([, ms]) => ms)), collection: Math.max(...since.map(([, , ms]) => ms)) }
}
