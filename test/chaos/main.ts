// `npm run test:chaos`: many faults at once. A checker then judges what people saw.
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { root } from '../support/command.ts'
import { findingsOf } from './checker.ts'
import { readHistory } from './history.ts'
import { type PlannedFault, planFaults } from './plan.ts'
import { runChaos } from './run.ts'
import { shrink } from './shrink.ts'
import type { Store } from './store.ts'
import { summaryOf } from './summary.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1e6)) },
    store: { type: 'string', default: 'both' },
    /** The folder for histories, configurations and logs. */
    history: { type: 'string' },
    /** The file of another build, `main.js`: upgrades go there and back. */
    'other-build': { type: 'string', default: join(root, 'dist', 'main.js') },
    /** A fault of the gateway itself, with which the run has to fail: a name in plants.ts. */
    plant: { type: 'string' },
    /** Repeats a run that fails with fewer faults. */
    shrink: { type: 'boolean', default: false },
    /** Judges a history that exists already. */
    judge: { type: 'string' },
  },
})
const say = (text: string) => void process.stdout.write(`${text}\n`)
const [seed, runMs] = [Number(values.seed), Number(values.minutes) * 60_000]
const kinds: readonly Store['kind'][] =
  values.store === 'both' ? ['sentinel', 'cluster'] : [values.store as Store['kind']]

/** Findings beyond these are only counted, for each property. */
const shownFindings = 5

if (values.judge === undefined) {
  const folder = values.history ?? mkdtempSync(join(tmpdir(), 'gatehouse-chaos-'))
  for (const kind of kinds) await runKind(kind, join(folder, `${kind}-${seed}`))
} else if (fails(values.judge)) process.exitCode = 1
// Connections of the world may still be open.
process.exit()

async function runKind(kind: Store['kind'], folder: string): Promise<void> {
  let runs = 0
  const runFails = async (plan: readonly PlannedFault[]) => {
    const at = (runs += 1) === 1 ? folder : join(folder, `run-${runs}`)
    const { 'other-build': otherBuild, plant } = values
    return fails(await runChaos({ seed, runMs, kind, plan, folder: at, otherBuild, plant, say }))
  }
  const plan = planFaults(seed, runMs)
  if (values.shrink) {
    const needed = await shrink(plan, runFails)
    say(`These faults suffice:\n${needed.map((fault) => JSON.stringify(fault)).join('\n')}`)
  } else if (await runFails(plan)) process.exitCode = 1
}

/** Judges a history, and says what it shows. */
function fails(path: string): boolean {
  const history = readHistory(path)
  say(summaryOf(history))
  const findings = findingsOf(history)
  for (const [property, those] of Map.groupBy(findings, (finding) => finding.property)) {
    for (const { sentence, events } of those.slice(0, shownFindings))
      say([`✖ ${property}: ${sentence}`, ...events.map((event) => `    ${JSON.stringify(event)}`)].join('\n'))
    if (those.length > shownFindings) say(`✖ ${property}: ${those.length - shownFindings} more`)
  }
  say(`${findings.length === 0 ? '✔ nothing found' : `✖ ${findings.length} findings`}: ${path}`)
  return findings.length > 0
}
