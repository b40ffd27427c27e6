import { spread, untilQuiet } from '../measure.ts'
import { table, withSpread } from '../report.ts'
import { signIn, type Stand } from '../stand.ts'
import { cpuMicros } from '../usage.ts'
import { standAll } from './requests.ts'
import type { Scenario } from './scenario.ts'

const atOnce = 8
const inARound = 200

/** Whole sign-ins: the page that needs one, the provider and back, code and userinfo, and the page. */
export const signIns: Scenario = {
  name: 'sign-in',
  title: 'Signing in, eight people at a time',
  async run(bench) {
    const stands = (await standAll(bench)).filter(({ contender }) => contender.signsIn)
    const measured = new Map<Stand, SignInRound[]>(stands.map((stand) => [stand, []]))
    for (const stand of stands) await signInMany(stand, 4 * inARound)
    for (let round = 0; round < bench.plan.rounds; round += 1)
      for (const [stand, rounds] of measured) {
        await untilQuiet(bench.plan.patience)
        rounds.push(await signInMany(stand, inARound))
      }
    const rows = [...measured].map(([{ title, contender }, rounds]) => {
      const of = (figure: keyof SignInRound) => rounds.map((round) => round[figure])
      bench.facts.set(`sign-in ${contender.name}`, spread(of('cpu')).median)
      return [title, withSpread(of('perSecond'), 0), withSpread(of('cpu'), 2)]
    })
    bench.print(table(['', 'sign-ins/s', 'CPU ms/sign-in'], rows))
    bench.print('\nSign-ins per second are limited by the provider and the browsers, which share the other processor.')
  },
}

interface SignInRound {
  readonly perSecond: number
  /** In ms. */
  readonly cpu: number
}

async function signInMany({ port, pid }: Stand, count: number): Promise<SignInRound> {
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
