// `npm run test:mutants -- ROOM|FILE[:LINE] … [--count N] [--seed N] [--then FOLDER …]`: whether
// the tests of rooms find faults. Each mutant changes one place of the sources of a room; its tests
// have to fail. `--count`: so many mutants of each room, chosen by the seed. `--then`: further
// tests, for the mutants that the tests of their own room do not find. `ALL=1`: for what is left
// then, the same folders again with their slow tests and long searches.
import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { endTests, runTests } from './mutants/run.mjs'
import { ensurePackages, ensurePrograms, root, stop } from './prepare.mjs'

/**
 * How long the tests of a file may take with a mutant, beside four times their usual time, in ms.
 */
const patienceMs = 20_000

ensurePackages()
ensurePrograms()
// Only here, because a fresh clone has no packages before.
const { mutantsOf } = await import('./mutants/mutate.mjs')
const { mutatedCopy } = await import('./mutants/copy.mjs')
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    count: { type: 'string', default: '40' },
    seed: { type: 'string', default: '1' },
    then: { type: 'string', multiple: true, default: [] },
  },
})
if (positionals.length === 0) stop('Name the rooms, such as `npm run test:mutants -- gate session`.')
const mutants = (await Promise.all(positionals.map(choose))).flat()
mutants.forEach((mutant, index) => (mutant.number = index + 1))
// In the clone, where links to the files of packages are possible.
const folder = mkdtempSync(join(root, 'dist.mutants-'))
process.on('exit', () => {
  endTests()
  rmSync(folder, { recursive: true, force: true })
})
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1))
const copy = await mutatedCopy(join(folder, 'copy'), mutants)
const rooms = [...new Set(mutants.map(({ room }) => room))]
for (const isAll of process.env.ALL === '1' ? [false, true] : [false]) {
  for (const room of rooms.filter(hasTests)) await search(left(room), [`test/${room}`], isAll)
  if (values.then.length > 0) await search(rooms.flatMap(left), values.then, isAll)
}
print()

/** Whether a room has a folder of tests. Only `--then` has tests for the others. */
function hasTests(room) {
  return existsSync(join(root, 'test', room))
}

/** The mutants of a room that no test has found yet. */
function left(wanted) {
  return mutants.filter(({ room, foundBy }) => room === wanted && foundBy === undefined)
}

/** The mutants of a room or of a file, as many as wanted. */
async function choose(named) {
  const [name, line] = named.split(':')
  const path = existsSync(join(root, 'src', name)) ? join('src', name) : name
  if (!path.startsWith('src/') || !existsSync(join(root, path))) stop(`There is no room and no file ${name}.`)
  const files = statSync(join(root, path)).isFile() ? [path] : sourcesIn(path)
  const all = []
  for (const file of files) {
    const text = readFileSync(join(root, file), 'utf8')
    for (const mutant of await mutantsOf(text)) {
      const change = `${text.slice(mutant.start, mutant.end)} → ${mutant.replacement}`.replaceAll(/\s+/g, ' ')
      if (line === undefined || mutant.line === Number(line))
        all.push({ ...mutant, file, room: path.split('/')[1], change })
    }
  }
  // The choice stays mostly the same when other places of the sources change.
  const rank = ({ file, change }) => createHash('sha256').update(`${values.seed} ${file} ${change}`).digest('hex')
  const ranked = all
    .map((mutant) => ({ mutant, rank: rank(mutant) }))
    .sort((one, two) => (one.rank < two.rank ? -1 : 1))
  const chosen = line === undefined ? ranked.slice(0, Number(values.count)) : ranked
  return chosen.map(({ mutant }) => mutant)
}

function sourcesIn(path) {
  const files = readdirSync(join(root, path), { recursive: true }).filter((file) => file.endsWith('.ts'))
  return files.map((file) => join(path, file)).sort()
}

/** Runs the tests that reach each mutant, until one fails. */
async function search(searched, paths, isAll) {
  const tests = []
  const ALL = isAll ? '1' : ''
  for (const { file, entry } of await copy.bundle(paths, isAll)) {
    const reached = join(folder, 'reached')
    const { isFailed, ms } = await runCopied(entry, { ALL, MUTANTS_REACHED: reached }, 600_000)
    if (isFailed) process.stdout.write(`${file} is left out: it fails without a mutant.\n`)
    const numbers = existsSync(reached) ? readFileSync(reached, 'utf8').split('\n').map(Number) : []
    if (!isFailed) tests.push({ file, entry, ms, reached: new Set(numbers) })
    rmSync(reached, { force: true })
  }
  tests.sort((one, two) => one.ms - two.ms)
  for (const mutant of searched) {
    const reaching = tests.filter(({ reached }) => reached.has(mutant.number))
    mutant.isReached ||= reaching.length > 0
    for (const { file, entry, ms } of reaching) {
      const { isFailed } = await runCopied(entry, { ALL, MUTANT: String(mutant.number) }, ms * 4 + patienceMs)
      if (!isFailed) continue
      Object.assign(mutant, { foundBy: file, isFast: !isAll })
      break
    }
    process.stdout.write(`${mutant.foundBy ?? (mutant.isReached ? 'SURVIVES' : 'NOT REACHED')}: ${nameOf(mutant)}\n`)
  }
}

/** Runs the tests of a file in the copy. */
function runCopied(entry, env, limitMs) {
  return runTests(entry, { cwd: copy.root, env: { ...process.env, TMPDIR: copy.temporary(), ...env }, limitMs })
}

function nameOf({ file, line, change }) {
  return `${file}:${line} ${change.length > 160 ? `${change.slice(0, 160)} …` : change}`
}

function print() {
  const unknown = rooms.flatMap(left)
  if (unknown.length > 0)
    process.stdout.write(`\nNo test finds:\n${unknown.map((mutant) => `- ${nameOf(mutant)}\n`).join('')}`)
  process.stdout.write(
    `\n| room | mutants | found by its tests | found by others | only by test:all | not found |
| --- | --: | --: | --: | --: | --: |\n`,
  )
  for (const room of rooms) {
    const own = mutants.filter((mutant) => mutant.room === room)
    const found = own.filter(({ foundBy }) => foundBy !== undefined)
    const fast = found.filter(({ isFast }) => isFast)
    const byRoom = fast.filter(({ foundBy }) => foundBy.startsWith(`test/${room}/`)).length
    const counts = [byRoom, fast.length - byRoom, found.length - fast.length, own.length - found.length]
    process.stdout.write(`| ${room} | ${[own.length, ...counts].join(' | ')} |\n`)
  }
}
