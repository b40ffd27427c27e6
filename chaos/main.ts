// `npm run test:chaos`: many faults at once. A checker then judges what people saw.
import { existsSync, mkdtempSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { root } from '../test/support/command.ts'
import { readOptions, refuse } from '../test/support/options.ts'
import { type HistoryEvent, readHistory } from './history.ts'
import { exitCodes, judge, type Judgement, type Verdict } from './judge.ts'
import { readLogs } from './logs.ts'
import { type PlannedFault, planFaults, shortestMinutes } from './plan.ts'
import { plantOfTheDay, plants } from './plants.ts'
import { reportOf } from './report.ts'
import { runChaos } from './run.ts'
import { setupOf, storeKinds, type StoreKind } from './setup.ts'
import { shrink } from './shrink.ts'
import { summaryOf } from './summary.ts'

const values = readOptions('npm run test:chaos', {
  minutes: { type: 'string', default: '5' },
  seed: { type: 'string', default: String(Math.floor(Math.random() * 1e6)) },
  store: { type: 'string', default: 'all' },
  /** The folder for histories, configurations and logs. */
  history: { type: 'string' },
  /** The file of another build, `main.js`: upgrades go there and back. */
  'other-build': { type: 'string', default: join(root, 'dist', 'main.js') },
  /** A fault of the gateway itself, with which the run has to fail: a name in plants.ts. */
  plant: { type: 'string' },
  /** Repeats a run that fails with fewer faults. */
  shrink: { type: 'boolean', default: false },
  /** Judges a history that exists already: its file, or its folder. */
  judge: { type: 'string' },
})
const say = (text: string) => void process.stdout.write(`${text}\n`)
const [seed, runMs] = [Number(values.seed), Number(values.minutes) * 60_000]
/** A planted fault of the gateway. */
const plant = values.plant === 'of-the-day' ? plantOfTheDay(new Date()) : values.plant
const planted = plants[plant ?? '']
const store = planted?.kind ?? values.store
const kinds = store === 'all' ? storeKinds : storeKinds.filter((kind) => kind === store)
const wrong = whatIsWrong()
if (wrong !== undefined) refuse(wrong)

if (values.judge === undefined) {
  const folder = values.history ?? mkdtempSync(join(tmpdir(), 'gatehouse-chaos-'))
  for (const kind of kinds) await runKind(kind, join(folder, `${kind}-${seed}`))
} else judgeAt(fileOf(values.judge))
// Connections of the world may still be open.
process.exit(process.exitCode)

/** What is wrong with the options. `undefined`: nothing. */
function whatIsWrong(): string | undefined {
  const { minutes, store, judge, history } = values
  if (judge !== undefined) return existsSync(judge) ? undefined : `There is no file ${judge}.`
  if (Number(minutes) < shortestMinutes) return `--minutes needs at least ${shortestMinutes}, not ${minutes}.`
  if (!Number.isSafeInteger(seed)) return `--seed needs a whole number, not ${values.seed}.`
  if (kinds.length === 0) return `--store needs ${storeKinds.join(', ')} or all, not ${store}.`
  if (plant !== undefined && !(plant in plants))
    return `--plant needs one of ${Object.keys(plants).join(', ')}, not ${plant}.`
  const build = values['other-build']
  if (!statSync(build, { throwIfNoEntry: false })?.isFile()) return `There is no file ${build}.`
  const folder = kinds.map((kind) => join(history ?? '', `${kind}-${seed}`)).find((path) => existsSync(path))
  return history !== undefined && folder !== undefined ? `${folder} exists already: choose another folder.` : undefined
}

async function runKind(kind: StoreKind, folder: string): Promise<void> {
  let runs = 0
  const runFails = async (plan: readonly PlannedFault[]) => {
    const at = (runs += 1) === 1 ? folder : join(folder, `run-${runs}`)
    const setup = { ...setupOf(kind, seed), ...planted?.setup }
    const options = { seed, runMs, setup, plan, folder: at, plant, say }
    return judgeAt(await runChaos({ ...options, otherBuild: values['other-build'] })) === 'found'
  }
  const plan = planFaults(seed, runMs, planted?.fault)
  if (values.shrink) {
    const needed = await shrink(plan, runFails)
    if (runs === 1) return
    if (needed.length === 0) return say('It fails without any fault.')
    say(`These faults suffice:\n${needed.map((fault) => JSON.stringify(fault)).join('\n')}`)
  } else await runFails(plan)
}

function fileOf(path: string): string {
  return statSync(path).isDirectory() ? join(path, 'history.jsonl') : path
}

/** Judges a history, says what it shows, and sets the exit code: the first that is not 0 counts. */
function judgeAt(path: string): Verdict {
  const history = historyIn(path)
  const logs = readLogs(dirname(path))
  const judgement = judge(history, logs)
  if (history.some(({ type }) => type === 'run')) say(summaryOf(history))
  say(`\n${reportOf(judgement, history, logs)}: ${path}`)
  process.exitCode ||= plant === undefined ? exitCodes[judgement.verdict] : judgePlant(plant, judgement)
  return judgement.verdict
}

/** Says whether a planted fault was found. Returns the exit code: 0 if it was. */
function judgePlant(name: string, { findings, verdict }: Judgement): number {
  const isFound = findings.some(({ property }) => plants[name]?.finds.includes(property))
  say(`${isFound ? '✔ found' : '✖ not found'}: the planted fault ${name}`)
  return isFound ? 0 : verdict === 'could not judge' ? exitCodes[verdict] : 1
}

function historyIn(path: string): HistoryEvent[] {
  try {
    return readHistory(path)
  } catch (error) {
    return refuse((error as Error).message)
  }
}
