// Measures how the cost of a request, a sign-in and a logout grows with the size of an
// installation. `npm run bench:growth`; see docs/growth.md.
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import { format, resolveConfig } from 'prettier'
import { readOptions, refuse } from '../test/support/options.ts'
import { makeBed, type Bed } from './bed.ts'
import { svgOf, type Chart } from './growth/chart.ts'
import { middleOf } from './growth/curve.ts'
import { curves, type Curve } from './growth/curves.ts'
import { chartOf, tableOf, type CurveFigures, type Figures } from './growth/figures.ts'
import { announcementsChart, announcementsTable, morningsTable } from './growth/mornings.ts'
import { costsBy, measureRound, type Cost, type Counts, type Operation } from './growth/operations.ts'
import { startWorld, type World } from './growth/world.ts'
import { replaceSection } from './page.ts'
import { memoryOf } from './redis-figures.ts'
import { startMeter } from './rounds.ts'

const values = readOptions('npm run bench:growth', {
  only: { type: 'string', multiple: true, default: [] },
  /** Two rounds, without the largest size; to see whether it works. */
  quick: { type: 'boolean', default: false },
  rounds: { type: 'string', default: '7' },
  /** Replaces the figures, the pictures and the tables of docs/growth.md. */
  write: { type: 'boolean', default: false },
})
const rounds = values.quick ? 2 : Number(values.rounds)
const counts: Counts = { sessions: 208, signIns: 32, requestMs: 600, idleMs: 400 }
/** Code that V8 has not compiled yet would look like a cost of the size. */
const warmUp = { rounds: 3, counts: { sessions: 408, signIns: 200, requestMs: 600, idleMs: 50 } }
const named = values.only.flatMap((names) => names.split(','))
const names = [...curves.map(({ name }) => name), 'simulation']
const unknown = named.find((name) => !names.includes(name))
if (unknown !== undefined) refuse(`There is no curve ${unknown}. There are: ${names.join(', ')}`)

execFileSync('taskset', ['-acp', '1', String(process.pid)])
for (const curve of curves) {
  if (named.length > 0 && !named.includes(curve.name)) continue
  // A bed of its own, so that the provider of one curve does not keep what another has left.
  const bed = await makeBed()
  await report(curve, await measure(bed, curve))
  await bed.close()
}
await reportSimulation(readFigures())
process.exit()

/** Measures all sizes in turn, so that other load on the machine affects all of them. */
async function measure(bed: Bed, { axis, sizes, operations, world: worldOf, prepare }: Curve): Promise<CurveFigures> {
  const startedAt = performance.now()
  const started: { readonly x: number; readonly world: World; readonly end: () => unknown }[] = []
  const isWanted = (operation: Operation) => operations.includes(operation)
  const costs = new Map<number, Partial<Record<Operation, Cost>>[]>()
  const redisBytes = new Map<number, number>()
  for (const x of values.quick ? sizes.slice(0, -1) : sizes) {
    const world = await startWorld(bed, worldOf(x))
    for (let n = 0; n < warmUp.rounds; n += 1) await measureRound(bed, world, warmUp.counts, isWanted)
    const end = (await prepare?.(world, x)) ?? (() => {})
    started.push({ x, world, end })
    costs.set(x, [])
    redisBytes.set(x, await memoryOf(world.servers[0]!))
  }
  const foreign: number[] = []
  for (let round = 0; round < rounds; round += 1)
    for (const at of started.keys()) {
      // Each size is the first of a round equally often.
      const { x, world } = started[(at + round) % started.length]!
      const stop = startMeter(process.pid)
      costs.get(x)?.push(await measureRound(bed, world, counts, isWanted))
      foreign.push(stop().foreign)
    }
  const points = started.map(({ x, world }) => {
    const results = costs.get(x) ?? []
    const costsOf = (operation: Operation) => {
      const of = (kind: keyof Cost) => middleOf(results.map((each) => each[operation]?.[kind] ?? NaN))
      return costsBy(of)
    }
    return {
      x,
      ...{ gatewayBytes: world.gatewayBytes(), redisBytes: redisBytes.get(x) ?? NaN },
      costs: Object.fromEntries(operations.map((operation) => [operation, costsOf(operation)])),
    }
  })
  for (const { world, end } of started) {
    await end()
    await world.stop()
  }
  console.error(`${axis}: ${((performance.now() - startedAt) / 60_000).toFixed(1)} minutes`)
  return { axis, ...conditions(), rounds, foreign: middleOf(foreign), points }
}

function conditions() {
  const { model = 'unknown processor' } = cpus()[0] ?? {}
  return {
    date: new Date().toISOString().slice(0, 10),
    node: process.version,
    processor: `${cpus().length} × ${model}`,
  }
}

async function report({ name }: Curve, figures: CurveFigures): Promise<void> {
  console.log(`\n## ${figures.axis}\n\n${tableOf(figures)}\n`)
  if (!values.write) return
  const file = at('growth/figures.json')
  writeFileSync(file, await pretty(file, JSON.stringify({ ...readFigures(), [name]: figures })))
}

function readFigures(): Figures {
  return JSON.parse(readFileSync(at('growth/figures.json'), 'utf8')) as Figures
}

/** Prints the simulation. With `--write`, writes all tables and pictures of the kept figures. */
async function reportSimulation(figures: Figures): Promise<void> {
  const [limits, mornings] = [announcementsTable(figures), morningsTable(figures)]
  console.log(`\n## simulation\n\n${limits}\n\n${mornings}\n`)
  if (!values.write) return
  const file = at('../docs/growth.md')
  let page = readFileSync(file, 'utf8')
  const write = (section: string, text: string, chart?: Chart) => {
    if (chart !== undefined) writeFileSync(at(`../docs/images/growth/${section}.svg`), svgOf(chart))
    page = replaceSection(page, section, text)
  }
  for (const [name, curve] of Object.entries(figures)) write(name, tableOf(curve), chartOf(curve))
  write('announcements', limits, announcementsChart(figures))
  write('mornings', mornings)
  writeFileSync(file, await pretty(file, page))
}

function at(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url))
}

async function pretty(file: string, text: string): Promise<string> {
  return format(text, { ...(await resolveConfig(file)), filepath: file })
}
