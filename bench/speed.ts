// Compares the cost of a signed-in request with other gateways and with proxies without sign-in.
// `npm run bench`; see docs/performance.md.
import { execFileSync } from 'node:child_process'
import { cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { reason } from '../src/core/errors.ts'
import { makeBed } from './bed.ts'
import { caddy } from './contenders/caddy.ts'
import { carrier } from './contenders/carriers.ts'
import type { Contender } from './contenders/contender.ts'
import { gatehouse } from './contenders/gatehouse.ts'
import { modAuthOpenidc } from './contenders/mod-auth-openidc.ts'
import { nginx } from './contenders/nginx.ts'
import { oauth2Proxy } from './contenders/oauth2-proxy.ts'
import { misses } from './scenarios/misses.ts'
import { hotPath, largeBody, manyConnections, manySessions, mediumBody, tls, uploads } from './scenarios/requests.ts'
import { sameRate } from './scenarios/same-rate.ts'
import type { Bench, Scenario } from './scenarios/scenario.ts'
import { signIns } from './scenarios/sign-ins.ts'
import { startUp } from './scenarios/start-up.ts'
import { sustained } from './scenarios/sustained.ts'
import { idleWebSockets, messages } from './scenarios/websockets.ts'
import { workers } from './scenarios/workers.ts'
import { stand as startStand, type Stand } from './stand.ts'
import { targetsTable } from './targets.ts'

const everyContender: readonly Contender[] = [
  gatehouse('redis'),
  gatehouse('memory'),
  gatehouse('redis', 'cookies'),
  gatehouse('redis', 'signed'),
  gatehouse('redis', 'pages'),
  gatehouse('redis', 'rewrite'),
  nginx,
  caddy,
  modAuthOpenidc('redis'),
  modAuthOpenidc('shm'),
  oauth2Proxy,
  carrier('@fastify/http-proxy'),
  carrier('http-proxy'),
]
/** The scenarios that the targets refer to. They run unless others are named. */
const forTargets: readonly Scenario[] = [hotPath, sameRate, largeBody, signIns, workers, startUp, sustained]
const further: readonly Scenario[] = [
  manyConnections,
  mediumBody,
  uploads,
  manySessions,
  misses,
  tls,
  messages,
  idleWebSockets,
]

const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: [] },
    contenders: { type: 'string' },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '3' },
    'warm-up': { type: 'string', default: '3' },
    patience: { type: 'string', default: '2' },
    node: { type: 'string', default: process.execPath },
  },
})
const { node } = values
const plan = {
  rounds: Number(values.rounds),
  seconds: Number(values.seconds),
  warmUp: Number(values['warm-up']),
  patience: Number(values.patience),
}
const named = values.only.flatMap((names) => names.split(','))
const scenarios = named.length === 0 ? forTargets : chosen('scenario', [...forTargets, ...further], named)
const wanted = chosen('contender', everyContender, values.contenders?.split(',') ?? [])

if (cpus().length < 2) fail('The bench needs two processors: one for the contender, and one for everything else.')
// Processes that start from here on run on the second processor by default.
execFileSync('taskset', ['-acp', '1', String(process.pid)])
const contenders = new Map(wanted.filter((each) => each.missing() === undefined).map((each) => [each.name, each]))
const bed = await makeBed()
introduce()
const facts = new Map<string, number>()
for (const scenario of scenarios) await carryOut(scenario)
const reached = targetsTable(facts)
if (reached !== undefined) print(`\n## Targets\n\n${reached}`)
await bed.close()
process.exit(process.exitCode)

async function carryOut(scenario: Scenario): Promise<void> {
  print(`\n## ${scenario.title}\n`)
  const stands: Stand[] = []
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
    print,
    facts,
  }
  try {
    await scenario.run(bench)
    for (const stand of stands) await finish(stand)
  } catch (error) {
    // The results of the other scenarios are still useful.
    console.error(`${scenario.name} failed: ${reason(error)}`)
    process.exitCode = 1
    await Promise.all(stands.map((each) => each.stop()))
  }
}

/** Stops a contender, and prints how many lines its access log lost. */
async function finish({ title, stop }: Stand): Promise<void> {
  const lost = await stop()
  // The gateway drops lines when the reader of the log is slow. Many dropped lines would make
  // requests look cheaper than they are.
  if (lost > 0) print(`${title}: ${(lost * 100).toFixed(1)} % of the lines of its access log were lost.`)
  if (lost > 0.2) throw new Error(`${title} did not write its access log`)
}

function introduce(): void {
  const { model = 'unknown processor' } = cpus()[0] ?? {}
  const version = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim()
  print(
    `${new Date().toISOString().slice(0, 10)}, Node.js ${version}, ${cpus().length} × ${model}; ${plan.rounds} rounds of ${plan.seconds} s ` +
      `in turn: medians (smallest–largest). The contender has one processor for itself, clients and upstream have the other one.`,
  )
  for (const { title, missing } of wanted) {
    const why = missing()
    if (why !== undefined) print(`Left out: ${title}: ${why}.`)
  }
}

/** The named ones, or all. */
function chosen<Named extends { readonly name: string }>(
  what: string,
  all: readonly Named[],
  names: readonly string[],
): readonly Named[] {
  const known = all.map(({ name }) => name)
  const stranger = names.find((name) => name !== 'all' && !known.includes(name))
  if (stranger !== undefined) fail(`There is no ${what} ${stranger}. There are: ${known.join(', ')}, all`)
  return names.length === 0 || names.includes('all') ? all : all.filter(({ name }) => names.includes(name))
}

function fail(why: string): never {
  console.error(why)
  process.exit(1)
}

function print(text: string): void {
  console.log(text)
}
