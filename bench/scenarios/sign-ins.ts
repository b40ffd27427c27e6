import { isQuiet, measure, spread, untilQuiet, usualLoad, type Round } from '../measure.ts'
import { table, withSpread } from '../report.ts'
import { signIn, type Stand } from '../stand.ts'
import { cpuMicros } from '../usage.ts'
import { standAll } from './requests.ts'
import type { Bench, Scenario } from './scenario.ts'

const atOnce = 8
const inARound = 200
/** The number of sign-ins after which V8 has compiled almost all code. */
const warmUp = 4000

/**
 * Complete sign-ins: the page that requires one, the provider and back, the code and UserInfo, and
 * the page. The speed of a machine varies, so nginx proxies requests before and after each round. A
 * sign-in is compared with them.
 */
export const signIns: Scenario = {
  name: 'sign-in',
  title: 'Signing in, eight people at a time',
  async run(bench) {
    const all = await standAll(bench)
    const stands = all.filter(({ contender }) => contender.signsIn)
    const nginx = all.find(({ contender }) => contender.name === 'nginx')
    const measured = new Map<Stand, SignInRound[]>(stands.map((stand) => [stand, []]))
    const first = new Map<Stand, Pick<SignInRound, 'cpu'>>()
    for (const stand of stands) {
      first.set(stand, await signInMany(stand, inARound))
      await signInMany(stand, warmUp)
    }
    if (nginx) await measure(bench.bed, nginx, usualLoad, bench.plan.warmUp)
    const cpuOfARequest = async () => (nginx ? (await quietRound(bench, nginx)).cpu : NaN)
    let before = await cpuOfARequest()
    for (let round = 0; round < bench.plan.rounds; round += 1)
      for (const [stand, rounds] of measured) {
        await untilQuiet(bench.plan.patience)
        const result = await signInMany(stand, inARound)
        const after = await cpuOfARequest()
        rounds.push({ ...result, inRequests: (result.cpu * 1000) / ((before + after) / 2) })
        before = after
      }
    const rows = [...measured].map(([stand, rounds]) => {
      const { title, contender } = stand
      const of = (figure: keyof SignInRound) => rounds.map((round) => round[figure])
      bench.facts.set(`sign-in ${contender.name}`, spread(of('cpu')).median)
      if (nginx) bench.facts.set(`sign-in in requests of nginx ${contender.name}`, spread(of('inRequests')).median)
      const cold = first.get(stand)?.cpu ?? NaN
      const inRequests = nginx ? [withSpread(of('inRequests'), 0)] : []
      return [title, withSpread(of('perSecond'), 0), withSpread(of('cpu'), 2), ...inRequests, cold.toFixed(2)]
    })
    const columns = ['CPU ms/sign-in', ...(nginx ? ['in requests of nginx'] : []), `the first ${inARound}, ms`]
    bench.print(table(['', 'sign-ins/s', ...columns], rows))
    bench.print('\nSign-ins per second are limited by the provider and the browsers, which share the other processor.')
  },
}

/** A round of the hot path: the one of up to three that other programs disturbed least. */
async function quietRound({ bed, plan }: Bench, stand: Stand): Promise<Round> {
  const rounds: Round[] = []
  do {
    await untilQuiet(plan.patience)
    rounds.push(await measure(bed, stand, usualLoad, plan.seconds / 2))
  } while (rounds.length < 3 && !rounds.some(isQuiet))
  return rounds.reduce((best, round) => (round.foreign < best.foreign ? round : best))
}

interface SignInRound {
  readonly perSecond: number
  /** The processor time of the contender for a sign-in, in ms. */
  readonly cpu: number
  /**
   * How many requests nginx proxies in that time, before and after the round. `NaN` without nginx.
   */
  readonly inRequests: number
}

/** `count` people sign in, eight at a time. */
export async function signInMany(
  { port, pid }: Pick<Stand, 'port' | 'pid'>,
  count: number,
): Promise<Omit<SignInRound, 'inRequests'>> {
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
