// What somebody has to read who follows a request: `npm run walks` lists the functions of src/ that
// each of ten such requests in a row enters, as V8's precise coverage counts them, except those
// that timers enter meanwhile.
//
// Functions of a file with the same name count once, also those without a name: they stand where
// they are passed. `all` counts each function.
import { readFileSync } from 'node:fs'
import { Session, type Profiler } from 'node:inspector/promises'
import type { TestContext } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { until } from '../test/support/until.ts'
import { startWorld } from '../test/support/world.ts'
import { table } from './report.ts'

const rounds = 10
const source = new URL('../src/', import.meta.url)
const over: (() => unknown)[] = []
const scope = { after: (tidy: () => unknown) => void over.unshift(tidy) }
const world = await startWorld(scope as TestContext)
const page = `${world.url}/orders`
const inspector = new Session()
inspector.connect()
await inspector.post('Profiler.enable')
await inspector.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })

const person = world.browser()
await person.get(page)
const tokens: string[] = []
for (let token = 0; token <= rounds; token += 1) {
  await world.browser().get(page)
  const { sub = '', sid = '' } = world.provider.sessions().at(-1) ?? {}
  tokens.push(await world.provider.logoutToken({ sub, sid }))
}
await entered()
await pause(1_200)
const timers = await entered()
const rows = [
  await walk('a signed-in GET', 1, () => person.send(page)),
  await walk('a Logout Token', 1, () => world.postLogoutToken({ logout_token: tokens.pop() ?? '' })),
  await walk('a sign-in with its first page', 4, () => world.browser().get(page)),
]
console.log(`\n${table(['', 'files', 'functions', 'all'], rows)}`)
for (const tidy of over) await tidy()

/** Prints the functions that each round enters, and returns a row of the table. */
async function walk(name: string, requests: number, step: () => Promise<unknown>): Promise<readonly string[]> {
  const ended = () => world.replicas[0]?.access.length ?? 0
  const found: Set<string>[] = []
  for (let round = 0; round <= rounds; round += 1) {
    const wanted = ended() + requests
    await entered()
    await step()
    await until('the end of the requests', () => ended() >= wanted)
    found.push(await entered())
  }
  // The first round warms up.
  const [first = timers, ...others] = found.slice(1)
  const all = [...others.reduce((some, each) => some.intersection(each), first).difference(timers)].sort()
  console.log(`\n${name}\n${all.map((line) => `  ${line}`).join('\n')}`)
  const files = new Set(all.map((line) => line.replace(/:.*/, '')))
  const names = new Set(all.map((line) => line.replace(/:\S+/, '')))
  return [name, ...[files.size, names.size, all.length].map(String)]
}

/** `FILE:LINE:COLUMN NAME` of each function that was entered since the last call. */
async function entered(): Promise<Set<string>> {
  const { result } = await inspector.post('Profiler.takePreciseCoverage')
  return new Set(result.filter(({ url }) => url.startsWith(source.href)).flatMap(functionsOf))
}

function functionsOf({ url, functions }: Profiler.ScriptCoverage): string[] {
  const text = readFileSync(new URL(url), 'utf8')
  return functions.flatMap(({ functionName, ranges: [range] }) => {
    if (range === undefined || range.count === 0) return []
    const lines = text.slice(0, range.startOffset).split('\n')
    const place = `${lines.length}:${(lines.at(-1) ?? '').length + 1}`
    return [`${url.slice(source.href.length)}:${place} ${functionName || '(no name)'}`]
  })
}
