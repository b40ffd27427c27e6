// Compares the cost of a signed-in request with other gateways and with proxies without sign-in.
// `npm run bench`; see bench/README.md.
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import { format, resolveConfig } from 'prettier'
import { reason } from '../src/core/errors.ts'
import { readOptions, refuse } from '../test/support/options.ts'
import { makeBed } from './bed.ts'
import { caddy } from './contenders/caddy.ts'
import { carrier } from './contenders/carriers.ts'
import type { Contender } from './contenders/contender.ts'
import { gatehouse } from './contenders/gatehouse.ts'
import { haproxy } from './contenders/haproxy.ts'
import { modAuthOpenidc } from './contenders/mod-auth-openidc.ts'
import { nginx } from './contenders/nginx.ts'
import { oauth2Proxy } from './contenders/oauth2-proxy.ts'
import { svgOf, svgOfBars } from './growth/chart.ts'
import { hasSection, replaceSection } from './page.ts'
import { table } from './report.ts'
import type { Figure, Plan } from './rounds.ts'
import { forTargets, further } from './scenarios/all.ts'
import type { Bench, Scenario } from './scenarios/scenario.ts'
import { settingOf, stand as startStand, type Stand } from './stand.ts'
import { targetsTable, type Facts } from './targets.ts'

const values = readOptions('npm run bench', {
  only: { type: 'string', multiple: true, default: [] },
  contenders: { type: 'string' },
  rounds: { type: 'string', default: '3' },
  seconds: { type: 'string', default: '2' },
  'warm-up': { type: 'string', default: '1' },
  patience: { type: 'string', default: '1' },
  /**
   * No round is repeated after this time. So a busy machine delays the end by minutes at most.
   */
  'repeat-for': { type: 'string', default: '12' },
  node: { type: 'string', default: process.execPath },
  /** Other builds of the gateway: NAME=PATH of `main.js`. They are contenders too. */
  build: { type: 'string', multiple: true, default: [] },
  /** Replaces the tables of docs/performance.md. */
  write: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
})
const everyContender: readonly Contender[] = [
  gatehouse('redis'),
  gatehouse('memory'),
  ...values.build.flatMap((text) => {
    const [name = '', program = ''] = text.split('=')
    return [gatehouse('redis', undefined, { name, program }), gatehouse('memory', undefined, { name, program })]
  }),
  oauth2Proxy('redis'),
  oauth2Proxy('cookie'),
  modAuthOpenidc('redis'),
  modAuthOpenidc('shm'),
  nginx,
  haproxy,
  caddy,
  carrier('@fastify/http-proxy'),
  carrier('http-proxy'),
]

if (values.help) {
  console.log(`npm run bench -- [--only SCENARIO,…] [--contenders NAME,…] [--node PATH] [--build NAME=PATH] [--write]
                 [--rounds 3] [--seconds 2] [--warm-up 1] [--patience 1] [--repeat-for 12]

bench/README.md explains them.
scenarios:  ${listed(forTargets)}
and:        ${listed(further)}
contenders: ${listed(everyContender)}`)
  process.exit()
}
const { node } = values
const startedAt = performance.now()
const plan: Plan = {
  rounds: Number(values.rounds),
  seconds: Number(values.seconds),
  warmUp: Number(values['warm-up']),
  patience: Number(values.patience),
  repeatUntil: startedAt + Number(values['repeat-for']) * 60_000,
}
const named = values.only.flatMap((names) => names.split(','))
const scenarios = named.length === 0 ? forTargets : chosen('scenario', [...forTargets, ...further], named)
const isComplete = values.contenders === undefined && forTargets.every((each) => scenarios.includes(each))
const wanted = chosen('contender', everyContender, values.contenders?.split(',') ?? [])

if (cpus().length < 2) refuse('The bench needs two processors: one for the contender, and one for everything else.')
if (values.write && values.contenders !== undefined) refuse('--write needs all contenders: leave out --contenders.')
// Processes that start from here on run on the second processor by default.
execFileSync('taskset', ['-acp', '1', String(process.pid)])
const contenders = new Map(wanted.filter((each) => each.missing() === undefined).map((each) => [each.name, each]))
const bed = await makeBed()
const facts: Facts = new Map()
/** The figures of the page: those of this run take the place of earlier ones. */
const keptFile = fileURLToPath(new URL('figures.json', import.meta.url))
if (isComplete) await report('contenders', 'Contenders', contendersTable())
for (const scenario of scenarios) await carryOut(scenario)
if (values.write) await report('targets', 'Targets', targetsTable(readKept()))
else if (isComplete) console.log(`\n## Targets\n\n${targetsTable(facts)}`)
await bed.close()
process.exit(process.exitCode)

async function carryOut(scenario: Scenario): Promise<void> {
  const stands: Stand[] = []
  const known = new Set(facts.keys())
  const paragraphs: string[] = [headline()]
  const bench: Bench = {
    bed,
    plan,
    contenders,
    stand: async (contender, options) => {
      const started = await startStand(bed, contender, { node, ...options })
      stands.push(started)
      return started
    },
    options: { node },
    print: (text) => void paragraphs.push(text),
    draw: (picture) => {
      const file = `images/performance/${scenario.name}.svg`
      paragraphs.push(`![${picture.title}](${file})`)
      const svg = 'lines' in picture ? svgOf(picture) : svgOfBars(picture)
      if (values.write) writeFileSync(fileURLToPath(new URL(`../docs/${file}`, import.meta.url)), svg)
    },
    facts,
  }
  try {
    await scenario.run(bench)
    for (const stand of stands) await finish(stand, bench.print)
    await report(scenario.name, scenario.title, paragraphs.join('\n\n'))
    if (values.write) await keep(facts)
  } catch (error) {
    // The results of the other scenarios are still useful. Those of this one must not be kept.
    for (const name of facts.keys()) if (!known.has(name)) facts.delete(name)
    console.error(`${scenario.name} failed: ${reason(error)}`)
    process.exitCode = 1
    await Promise.all(stands.map((each) => each.stop()))
  }
}

/** Prints a section of the report and, with `--write`, replaces it in docs/performance.md. */
async function report(section: string, title: string, text: string): Promise<void> {
  console.log(`\n## ${title}\n\n${text}\n\n(after ${minutes()} minutes)`)
  if (!values.write) return
  const file = fileURLToPath(new URL('../docs/performance.md', import.meta.url))
  const shown = readFileSync(file, 'utf8')
  if (!hasSection(shown, section)) return
  const page = replaceSection(shown, section, text)
  writeFileSync(file, await format(page, { ...(await resolveConfig(file)), parser: 'markdown' }))
}

function readKept(): Facts {
  return new Map(Object.entries(JSON.parse(readFileSync(keptFile, 'utf8')) as Record<string, Figure>))
}

/** Keeps the figures of a run. The targets are compared with all that are kept. */
async function keep(facts: Facts): Promise<void> {
  const measured = `${today()}, ${processor()}`
  const stamped = [...facts].map(([name, figure]): [string, Figure] => [name, { ...figure, measured }])
  const all = [...new Map([...readKept(), ...stamped])].sort(([a], [b]) => (a < b ? -1 : 1))
  const options = { ...(await resolveConfig(keptFile)), parser: 'json' }
  writeFileSync(keptFile, await format(JSON.stringify(Object.fromEntries(all)), options))
}

function minutes(): string {
  return ((performance.now() - startedAt) / 60_000).toFixed(1)
}

/** Stops a contender, and says how many lines its access log lost. */
async function finish({ title, stop }: Stand, print: (text: string) => void): Promise<void> {
  const lost = await stop()
  // The gateway drops lines when the reader of the log is slow. Many dropped lines would make
  // requests look cheaper than they are.
  if (lost > 0) print(`${title}: ${(lost * 100).toFixed(1)} % of the lines of its access log were lost.`)
  if (lost > 0.2) throw new Error(`${title} did not write its access log`)
}

/** When and on what a section was measured. Sections may come from different runs. */
function headline(): string {
  const version = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim().slice(1)
  const { rounds, seconds } = plan
  return (
    `${today()}, Node.js ${version}, ${processor()}. ` +
    `${rounds} ${rounds === 1 ? 'round' : 'rounds'} of ${seconds} s in turn.`
  )
}

function today(): string {
  return new Date().toISOString().slice(0, 10)
}

function processor(): string {
  const model = cpus()[0]?.model ?? 'unknown processor'
  return `${cpus().length} × ${model.replaceAll(/\(R\)| Processor\b/g, '')}`
}

/** What each contender runs with. */
function contendersTable(): string {
  const setting = settingOf(0, { node })
  const firstWith = new Map<string, string>()
  const rows = wanted.map(({ title, missing, version, runsWith }) => {
    const why = missing()
    if (why !== undefined) return [title, '—', `left out: ${why}`]
    const text = runsWith(setting)
    const first = firstWith.get(text)
    if (first === undefined) firstWith.set(text, title)
    return [title, version(), first === undefined ? text : `as ${first}`]
  })
  return `${headline()}\n\n${table(['', 'version', 'runs with'], rows)}`
}

/** The named ones, or all. */
function chosen<Named extends { readonly name: string }>(
  what: string,
  all: readonly Named[],
  names: readonly string[],
): readonly Named[] {
  const stranger = names.find((name) => name !== 'all' && all.every((each) => each.name !== name))
  if (stranger !== undefined) refuse(`There is no ${what} ${stranger}. There are: ${listed(all)}, all`)
  return names.length === 0 || names.includes('all') ? all : all.filter(({ name }) => names.includes(name))
}

function listed(all: readonly { readonly name: string }[]): string {
  return all.map(({ name }) => name).join(', ')
}
