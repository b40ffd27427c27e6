// `npm test [-- FILE|FOLDER …]`: the tests of the files named, or of every file below test/, with
// Node's own test runner. Files that begin with "// Slow:" are left out, unless they are named or
// `ALL=1` is set (`npm run test:all`).
import { spawn, spawnSync } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { ensureBuild, ensurePackages, ensurePrograms, root } from './prepare.mjs'
import { chooseFiles, groupFiles } from './tests/files.mjs'

/** How many processes run at once. While some wait, others use their processors. */
const processes = Number(process.env.TEST_PROCESSES ?? 3 * availableParallelism())
const startedAt = performance.now()
const isAll = process.env.ALL === '1'
const named = process.argv.slice(2)
const { files, leftOut } = chooseFiles(named, isAll)

ensurePackages()
ensurePrograms()
ensureBuild()
const folder = join(root, 'node_modules', '.cache', `tests-${process.pid}`)
// Only here, because a fresh clone has no packages before.
const { bundleTests } = await import('./tests/bundle.mjs')
const { failedFiles, needsMark, summarize } = await import('./tests/summary.mjs')
const groups = groupFiles(files, processes)
const entries = await bundleTests(groups, folder)
const report = join(folder, 'report.json')
const reporter = (name, destination) => [`--test-reporter=${name}`, `--test-reporter-destination=${destination}`]
// With the source maps, a stack trace names the place in the TypeScript file.
const options = ['--enable-source-maps', '--test', `--test-concurrency=${processes}`, '--test-timeout=1200000']
const reporters = [
  ...reporter(isAll || named.length > 0 ? 'spec' : 'dot', 'stdout'),
  ...reporter(join(root, '.ci', 'tests', 'report.mjs'), 'stderr'),
]
const env = { ...process.env, TEST_REPORT: report }
const tests = spawn(process.execPath, [...options, ...reporters, ...entries], { cwd: root, stdio: 'inherit', env })
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => tests.kill(signal))
tests.on('exit', (code) => {
  const wrong = summarize({ report, folder, groups, leftOut, isWhole: named.length === 0, isAll, startedAt })
  // Files that run at once may be charged for each other.
  const isFine = wrong.every((file) => isAll && needsMark(costAlone(file)))
  const failed = named.length === 0 && isFine ? failedFiles({ report, groups }) : undefined
  rmSync(folder, { recursive: true, force: true })
  const passesAlone = failed !== undefined && passAlone(failed)
  process.exit(passesAlone || (code === 0 && isFine) ? 0 : code || 1)
})

/** What a file costs while nothing else runs. */
function costAlone(file) {
  const costs = join(root, 'node_modules', '.cache', `costs-${process.pid}.json`)
  const env = { ...process.env, TEST_COSTS: costs }
  spawnSync(process.execPath, [process.argv[1], file], { cwd: root, stdio: 'inherit', env })
  const cost = JSON.parse(readFileSync(costs, 'utf8'))[file] ?? { usedMs: 0, tookMs: 0 }
  rmSync(costs)
  return cost
}

/**
 * Runs the files of a few failed tests once more while nothing else runs. A test that passes now
 * does not fail the run, but the last lines name it: it depends on what runs beside it.
 */
function passAlone(failed) {
  console.log('\nOnce more, with nothing beside them, the files of the tests that failed:\n')
  const again = [...new Set([...failed.values()].flat())]
  const env = { ...process.env, TEST_PROCESSES: '1', TEST_COSTS: '' }
  const { status } = spawnSync(process.execPath, [process.argv[1], ...again], { cwd: root, stdio: 'inherit', env })
  if (status !== 0) return false
  const names = [...failed].map(([name, files]) => `- ${name} (${files.join(', ')})\n`)
  console.log(`\nThese tests failed beside others and passed alone. Each is a fault to mend:\n${names.join('')}`)
  return true
}
