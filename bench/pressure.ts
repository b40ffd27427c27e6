// Measures how a gateway serves a person while others send much: `npm run bench:pressure`. See
// bench/README.md.
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { cpus } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import { readOptions, refuse } from '../test/support/options.ts'
import { makeBed, type Bed } from './bed.ts'
import type { Contender, Setting } from './contenders/contender.ts'
import { gatehouse } from './contenders/gatehouse.ts'
import { nginx } from './contenders/nginx.ts'
import { oauth2Proxy } from './contenders/oauth2-proxy.ts'
import { limitCpu, limitMemory } from './cpu-quota.ts'
import { Observer } from './observer.ts'
import type { Pressed, Pressure } from './pressing.ts'
import { start } from './process.ts'
import { table } from './report.ts'
import { stand } from './stand.ts'
import { memoryBytes } from './usage.ts'

const values = readOptions('npm run bench:pressure', {
  only: { type: 'string', default: '' },
  contenders: { type: 'string', default: '' },
  seconds: { type: 'string', default: '6' },
  node: { type: 'string', default: process.execPath },
})

/** A path without a sign-in. */
const publicPath = '/bytes/512'
const privatePath = '/bytes/1024'
const people = 100
/** How long everybody may take to be served, in ms. */
const longestMs = 60_000

interface Situation {
  readonly what: string
  readonly press: Omit<Pressure, 'port' | 'cookies' | 'network'>
  /** How many processes press, each with its own addresses. */
  readonly processes?: number
  /** It ends when everybody has been served, instead of after some seconds. */
  readonly untilServed?: boolean
  readonly setting?: Pick<Setting, 'logsTo'>
  /** Only half a processor, and 128 MiB. */
  readonly isConfined?: boolean
  /** Whether only contenders with sign-in take part. */
  readonly signsIn?: boolean
}

const situations: readonly Situation[] = [
  {
    what: 'half a processor, 128 MiB, and a log that is read at 40 KB/s; 64 clients',
    press: { kind: 'crawl', count: 64, path: privatePath, addresses: 64 },
    setting: { logsTo: 'a slow reader' },
    isConfined: true,
  },
  {
    what: '10,000 connections at once, after a network was cut',
    press: { kind: 'arrive', count: 10_000, path: privatePath, addresses: 200 },
    untilServed: true,
  },
  {
    what: '1,000 people sign in within a second, from five addresses',
    press: { kind: 'sign-ins', count: 200, path: privatePath, addresses: 1 },
    processes: 5,
    untilServed: true,
    signsIn: true,
  },
  {
    what: 'a crawler on public paths, 64 connections from one address',
    press: { kind: 'crawl', count: 64, path: publicPath, addresses: 1 },
  },
  {
    what: 'a script of one person, 5,000 requests a second',
    press: { kind: 'rate', count: 5_000, path: privatePath, addresses: 1 },
  },
]

const everyContender: readonly Contender[] = [gatehouse('redis'), oauth2Proxy('redis'), nginx]

const chosen = situations.filter(({ what }) => what.includes(values.only))
if (chosen.length === 0)
  refuse(`There is no situation ${values.only}. There are:\n${situations.map(({ what }) => what).join('\n')}`)
const wanted = everyContender.filter(({ name }) => name.includes(values.contenders))
if (wanted.length === 0)
  refuse(`There is no contender ${values.contenders}. There are: ${everyContender.map(({ name }) => name).join(', ')}`)

execFileSync('taskset', ['-acp', '1', String(process.pid)])
const { model = 'unknown' } = cpus()[0] ?? {}
console.log(`${new Date().toISOString().slice(0, 10)}, Node.js ${process.version}, ${cpus().length} × ${model}\n`)
const bed = await makeBed()
for (const situation of chosen) {
  const rows: string[][] = []
  for (const contender of wanted) {
    if (contender.missing() !== undefined) continue
    if (situation.signsIn === true && !contender.signsIn) continue
    rows.push(await measure(bed, contender, situation))
  }
  console.log(`${situation.what}:\n`)
  const observer = ['person served before', 'p50 ms', 'p99 ms', 'served meanwhile', 'p50 ms', 'p99 ms', 'calm after ms']
  console.log(`${table(['', ...observer, 'the load got', 'all served after s', 'peak MB'], rows)}\n`)
}
await bed.close()
process.exit()

async function measure(bed: Bed, contender: Contender, situation: Situation): Promise<string[]> {
  const { processes = 1, press, setting, isConfined = false } = situation
  const at = await stand(bed, contender, {
    ...{ node: values.node, people: contender.signsIn ? people : 1, changesFields: true },
    ...{ publicPath, usualLimits: true, ...setting },
  })
  const releases = isConfined ? [limitCpu(at.pid, 0.5), limitMemory(at.pid, 128)] : []
  const [first, ...others] = at.visitors.map(({ cookie }) => cookie)
  const observer = new Observer(at, privatePath, first ?? '')
  let peak = 0
  const sampling = setInterval(() => (peak = Math.max(peak, memoryBytes(at.pid))), 100)
  try {
    await observer.watch(wait(2_000))
    const before = await observer.watch(wait(3_000))
    const cookies = press.path === publicPath ? [] : others
    const order = { ...press, port: at.port, cookies: cookies.filter(Boolean) }
    const pressing = Array.from({ length: processes }, (_, index) => startPressure({ ...order, network: 10 + index }))
    await Promise.all(pressing.map(({ loaded }) => loaded))
    await wait(500)
    for (const { begin } of pressing) begin()
    const end = situation.untilServed
      ? Promise.race([Promise.all(pressing.map(({ pressed }) => pressed)), wait(longestMs)])
      : wait(Number(values.seconds) * 1000)
    const meanwhile = await observer.watch(end)
    for (const { stop } of pressing) stop()
    const endedAt = performance.now()
    const got = await Promise.all(pressing.map(({ pressed }) => pressed))
    const calm = await observer.untilCalm(before.p99)
    return [
      at.title,
      ...[`${before.served} of ${before.sent}`, before.p50.toFixed(1), before.p99.toFixed(1)],
      ...[
        `${meanwhile.served} of ${meanwhile.sent}${meanwhile.refused && ` (${meanwhile.refused})`}`,
        meanwhile.p50.toFixed(1),
        meanwhile.p99.toFixed(1),
      ],
      calm === undefined ? 'not within 20 s' : Math.max(0, calm - endedAt).toFixed(0),
      sumOf(got),
      lastOf(got),
      (peak / 2 ** 20).toFixed(0),
    ]
  } finally {
    clearInterval(sampling)
    observer.close()
    await at.stop()
    for (const release of releases) release()
  }
}

function startPressure(order: Pressure) {
  const child = start('pressing.ts', [JSON.stringify(order)])
  const loaded = once(child, 'message')
  const pressed = loaded.then(async () => ((await once(child, 'message')) as [Pressed])[0])
  // It may have reported and ended by itself.
  return { loaded, pressed, begin: () => void child.send('go'), stop: () => void child.send('stop', () => {}) }
}

function sumOf(got: readonly Pressed[]): string {
  const sums = new Map<string, number>()
  for (const { statuses } of got)
    for (const [status, count] of Object.entries(statuses)) sums.set(status, (sums.get(status) ?? 0) + count)
  return [...sums].map(([status, count]) => `${status}: ${count.toLocaleString('en')}`).join(', ')
}

function lastOf(got: readonly Pressed[]): string {
  const times = got.map(({ allServedMs }) => allServedMs)
  return times.includes(undefined) ? '—' : (Math.max(...(times as number[])) / 1000).toFixed(1)
}
