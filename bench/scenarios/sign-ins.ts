import { conditions, quietness, table, withSpread } from '../report.ts'
import { figureOf, runInTurn, startMeter, warmUp, type Disturbed, type WarmUp } from '../rounds.ts'
import { signIn, type Stand } from '../stand.ts'
import { standAll } from './requests.ts'
import type { Bench, Scenario } from './scenario.ts'

const atOnce = 8
const inARound = 200
/** A window is long, because V8 compiles the code of sign-ins slowly. */
const warmUpWindow = { signIns: 800, most: 6, leastCpuSeconds: 2 }

/**
 * Complete sign-ins: the page that requires one, the provider and back, the code and UserInfo, and
 * the page. Cold: the first 200 of a new process. Warm: after a warm-up.
 */
export const signIns: Scenario = {
  name: 'sign-in',
  title: 'Signing in, eight people at a time',
  async run(bench) {
    const cold = await measureCold(bench)
    const stands = await standAll(bench, {}, 'sign-in')
    const warmUps = new Map<Stand, WarmUp>()
    for (const stand of stands) {
      const window = async () => {
        const { cpu } = await signInMany(stand, warmUpWindow.signIns)
        return { each: cpu, cpuSeconds: (cpu * warmUpWindow.signIns) / 1000 }
      }
      warmUps.set(stand, await warmUp(window, warmUpWindow))
    }
    const warm = await runInTurn(stands, bench.plan, (stand) => signInMany(stand, inARound))
    const cpuOf = (rounds: readonly SignInRound[] = []) => rounds.map(({ cpu }) => cpu)
    const rows = stands.map((stand) => {
      const { contender, title } = stand
      const [first, rounds] = [cold.get(contender.name) ?? [], warm.get(stand) ?? []]
      bench.facts.set(
        `sign-in cold ${contender.name}`,
        figureOf(first, ({ cpu }) => cpu),
      )
      bench.facts.set(
        `sign-in warm ${contender.name}`,
        figureOf(rounds, ({ cpu }) => cpu),
      )
      const perSecond = withSpread(rounds.map((round) => round.perSecond))
      const coldly = [withSpread(cpuOf(first), 2), quietness(first)]
      return [
        title,
        perSecond,
        withSpread(cpuOf(rounds), 2),
        conditions(rounds, warmUps.get(stand) as WarmUp),
        ...coldly,
      ]
    })
    const warmly = ['warm: sign-ins/s', 'CPU ms', 'quiet rounds']
    bench.print(table(['', ...warmly, `cold: CPU ms`, 'quiet rounds'], rows))
  },
}

/** Each round is the first sign-ins of a new process. By name of the contender. */
async function measureCold(bench: Bench): Promise<Map<string, readonly SignInRound[]>> {
  const contenders = [...bench.contenders.values()].filter(({ signsIn }) => signsIn)
  const measured = await runInTurn(contenders, bench.plan, async (contender) => {
    const stand = await bench.stand(contender)
    const round = await signInMany(stand, inARound)
    await stand.stop()
    return round
  })
  return new Map([...measured].map(([{ name }, rounds]) => [name, rounds]))
}

interface SignInRound extends Disturbed {
  readonly perSecond: number
  /** The processor time of the contender for a sign-in, in ms. */
  readonly cpu: number
}

/** `count` people sign in, eight at a time. */
export async function signInMany({ port, pid }: Pick<Stand, 'port' | 'pid'>, count: number): Promise<SignInRound> {
  const stop = startMeter(pid)
  let left = count
  const person = async (): Promise<void> => {
    while (left > 0) {
      left -= 1
      await signIn(`http://127.0.0.1:${port}`)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, person))
  const { seconds, cpu, foreign } = stop()
  return { perSecond: count / seconds, cpu: cpu / 1000 / count, foreign }
}
