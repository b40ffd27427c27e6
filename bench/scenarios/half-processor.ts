// What a sidecar feels like in a container of half a processor and 128 MiB.
import { setTimeout as wait } from 'node:timers/promises'
import { request } from 'undici'
import { freePort } from '../../test/support/free-port.ts'
import type { Contender, Setting } from '../contenders/contender.ts'
import { beginWithin, canLimit } from '../cpu-quota.ts'
import { quietness, table, withSpread } from '../report.ts'
import { figureOf, percentile, runInTurn, startMeter, type Disturbed } from '../rounds.ts'
import { settingOf, signIn } from '../stand.ts'
import { memoryBytes } from '../usage.ts'
import { withRedis } from './requests.ts'
import type { Bench, Scenario } from './scenario.ts'

const container = { share: 0.5, mebibytes: 128 }
/** People who sign in within a minute, as on Monday at nine. */
const people = 1_000
const minuteMs = 60_000

/** From the start of the process until a person who is signed in gets a page. */
export const startInContainer: Scenario = {
  name: 'start-in-container',
  title: 'From start to the first page, with half a processor and 128 MiB',
  async run(bench) {
    const all = signingIn(bench).flatMap((contender): Variant[] => [
      { title: contender.title, contender, nodeOptions: [] },
      ...(contender.name === 'gatehouse-redis' ? [withoutCollection(contender)] : []),
    ])
    const visits = new Map<Variant, Visit>()
    for (const variant of all) visits.set(variant, await signInFirst(bench, variant))
    const measured = await runInTurn(all, bench.plan, (variant) =>
      startOf(bench, variant, visits.get(variant) as Visit),
    )
    const rows = [...measured].map(([{ title, contender, nodeOptions }, rounds]) => {
      const name = `start in container${nodeOptions.length > 0 ? ' without collection' : ''} ${contender.name}`
      bench.facts.set(
        name,
        figureOf(rounds, ({ ms }) => ms),
      )
      return [title, withSpread(rounds.map(({ ms }) => ms)), quietness(rounds)]
    })
    bench.print(table(['', 'ms', 'quiet rounds'], rows))
  },
}

/** A thousand people sign in within a minute, at even intervals. */
export const monday: Scenario = {
  name: 'monday',
  title: '1,000 people sign in within a minute, with half a processor and 128 MiB',
  async run(bench) {
    const measured = await runInTurn(signingIn(bench), { ...bench.plan, rounds: 1 }, (each) => mondayOf(bench, each))
    const rows = [...measured].map(([{ name, title }, rounds]) => {
      const ms = rounds.flatMap((round) => round.ms)
      bench.facts.set(`monday p95 ${name}`, { ...figureOf(rounds, () => 0), value: percentile(ms, 0.95) })
      const [peak = 0] = rounds.map((round) => round.peak)
      const cells = [0.5, 0.95, 1].map((part) => percentile(ms, part).toFixed(0))
      return [title, ...cells, (peak / 2 ** 20).toFixed(0), quietness(rounds)]
    })
    bench.print(table(['a sign-in, with the provider', 'p50 ms', 'p95', 'slowest', 'peak MB', 'quiet rounds'], rows))
  },
}

interface Variant {
  readonly title: string
  readonly contender: Contender
  readonly nodeOptions: readonly string[]
}

function withoutCollection(contender: Contender): Variant {
  return { title: `${contender.title}, without the collection`, contender, nodeOptions: ['--no-expose-gc'] }
}

function signingIn(bench: Bench): readonly Contender[] {
  if (!canLimit()) throw new Error('it needs root and the control groups of Linux, version 1')
  return [...withRedis(bench).contenders.values()].filter(({ signsIn }) => signsIn)
}

/** A person who signed in, and the setting with which the session is found again. */
interface Visit {
  readonly setting: Setting
  readonly cookie: string
}

async function signInFirst({ bed, options }: Bench, { contender, nodeOptions }: Variant): Promise<Visit> {
  const setting = settingOf(await freePort(), { ...options, nodeOptions })
  const running = await contender.start(bed, setting)
  const { cookie } = await signIn(`http://127.0.0.1:${setting.port}`)
  await running.stop()
  return { setting, cookie }
}

interface Start extends Disturbed {
  readonly ms: number
}

async function startOf({ bed }: Bench, { contender }: Variant, { setting, cookie }: Visit): Promise<Start> {
  const stop = startMeter(process.pid)
  const startedAt = performance.now()
  const [starting, release] = beginWithin(container, () => contender.start(bed, setting))
  await untilServed(`http://127.0.0.1:${setting.port}/bytes/1024`, cookie)
  const ms = performance.now() - startedAt
  const { foreign } = stop()
  await (await starting).stop()
  release()
  return { ms, foreign }
}

async function untilServed(url: string, cookie: string): Promise<void> {
  for (;;) {
    const response = await request(url, { headers: { cookie }, reset: true }).catch(() => undefined)
    await response?.body.dump()
    if (response?.statusCode === 200) return
    await wait(5)
  }
}

interface MondayRound extends Disturbed {
  readonly ms: readonly number[]
  /** The highest resident memory, in bytes. */
  readonly peak: number
}

async function mondayOf({ bed, options }: Bench, contender: Contender): Promise<MondayRound> {
  const setting = settingOf(await freePort(), options)
  const [starting, release] = beginWithin(container, () => contender.start(bed, setting))
  const running = await starting
  const stop = startMeter(running.pid)
  let peak = 0
  const sampling = setInterval(() => (peak = Math.max(peak, memoryBytes(running.pid))), 500)
  const startedAt = performance.now()
  const one = async (n: number): Promise<number> => {
    const due = startedAt + (n * minuteMs) / people
    await wait(Math.max(0, due - performance.now()))
    await signIn(`http://127.0.0.1:${setting.port}`)
    return performance.now() - due
  }
  const ms = await Promise.all(Array.from({ length: people }, (_, n) => one(n)))
  clearInterval(sampling)
  const { foreign } = stop()
  await running.stop()
  release()
  return { ms, peak, foreign }
}
