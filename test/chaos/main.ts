// `npm run test:chaos`: many faults at once, and a judgement of what people saw of them.
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { root } from '../support/command.ts'
import { type HistoryEvent, readHistory } from './history.ts'
import { planFaults } from './plan.ts'
import { runChaos } from './run.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1e6)) },
    store: { type: 'string', default: 'both' },
    history: { type: 'string' },
    'other-build': { type: 'string', default: join(root, 'dist', 'main.js') },
  },
})
const seed = Number(values.seed)
const runMs = Number(values.minutes) * 60_000
const folder = values.history ?? mkdtempSync(join(tmpdir(), 'gatehouse-chaos-'))
const say = (text: string) => void process.stdout.write(`${text}\n`)

for (const kind of values.store === 'both' ? (['sentinel', 'cluster'] as const) : [values.store as 'sentinel']) {
  const plan = planFaults(seed, runMs)
  const path = await runChaos({
    ...{ seed, runMs, kind, plan, say, otherBuild: values['other-build'] },
    folder: join(folder, `${kind}-${seed}`),
  })
  writeFileSync(join(folder, `${kind}-${seed}`, 'plan.json'), JSON.stringify(plan, undefined, 2))
  summarize(readHistory(path))
}
process.exit()

function summarize(history: readonly HistoryEvent[]): void {
  const counts = new Map<string, number>()
  const count = (key: string) => counts.set(key, (counts.get(key) ?? 0) + 1)
  for (const event of history) {
    if (event.type === 'fault') count(`fault ${event.kind}`)
    else if (event.type === 'request') count(`request ${event.kind} ${event.code ?? event.error ?? event.status}`)
    else if (event.type === 'sign-in')
      count(`sign-in ${event.signedIn ? 'ok' : (event.code ?? event.error ?? event.status)}`)
    else if (event.type === 'ending') count(`ending ${event.by} ${event.code ?? event.error ?? event.status}`)
    else if (event.type === 'stream') count(`stream ${event.reason} ${event.code ?? ''}`)
    else count(event.type)
  }
  for (const [key, value] of [...counts].toSorted()) say(`  ${String(value).padStart(6)} ${key}`)
}
