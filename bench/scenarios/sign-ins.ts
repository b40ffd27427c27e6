import { spread, untilQuiet } from '../measure.ts'
import { table, withSpread } from '../report.ts'
import { signIn, type Stand } from '../stand.ts'
import { cpuMicros } from '../usage.ts'
import { standAll } from './requests.ts'
import type { Scenario } from './scenario.ts'

const atOnce = 8
const inARound = 200
/** After so many hardly anything is compiled any more. */
const warmUp = 4000

/** Whole sign-ins: the page that needs one, the provider and back, code and userinfo, and the page. */
export const signIns: Scenario = {
  name: 'sign-in',
  title: 'Signing in, eight people at a time',
  async run(bench) {
    const stands = (await standAll(bench)).filter(({ contender }) => contender.signsIn)
    const measured = new Map<Stand, SignInRound[]>(stands.map((stand) => [stand, []]))
    const first = new Map<Stand, SignInRound>()
    for (const stand of stands) {
      first.set(stand, await signInMany(stand, inARound))
      await signInMany(stand, warmUp)
    }
    for (let round = 0; round < bench.plan.rounds; round += 1)
      for (const [stand, rounds] of measured) {
        await untilQuiet(bench.plan.patience)
        rounds.push(await signInMany(stand, inARound))
      }
    const rows = [...measured].map(([stand, rounds]) => {
      const { title, contender } = stand
      const of = (figure: keyof SignInRound) => rounds.map((round) => round[figure])
      bench.facts.set(`sign-in ${contender.name}`, spread(of('cpu')).median)
      const cold = first.get(stand)?.cpu ?? NaN
      return [title, withSpread(of('perSecond'), 0), withSpread(of('cpu'), 2), cold.toFixed(2)]
    })
    bench.print(table(['', 'sign-ins/s', 'CPU ms/sign-in', `the first ${inARound}`], rows))
    bench.print('\nSign-ins per second are limited by the provider and the browsers, which share the other processor.')
  },
}

interface SignInRound {
  readonly perSecond: number
  /** In ms. */
  readonly cpu: number
}

/** `count` people sign in, eight at a time. */
export async function signInMany({ port, pid }: Pick<Stand, 'port' | 'pid'>, count: number): Promise<SignInRound> {
  const startedAt = performance.now()
  const before = cpuMicros(pid)
  let left = count
  const person = async (): Promise<void> => {
    while (left > 0) {
      left -= 1
      await signIn(`http://127.0.0.1:${port}`)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, person))
  const seconds = (performance.now() - startedAt) / 1000
  return { perSecond: count / seconds, cpu: (cpuMicros(pid) - before) / 1000 / count }
}
