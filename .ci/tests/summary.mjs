// What the end of a run says.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, loadavg } from 'node:os'
import { basename, join, relative } from 'node:path'
import { root } from '../prepare.mjs'
import { reasonOf } from './files.mjs'

/** The most processor time of a file without "// Slow:", in ms of a usual machine. */
const fastMs = 2000
/** Other programs, and what the tests of a process share, make a file dearer by this much. */
const tolerance = 3
/** What a file with "// Slow:" uses or takes at least. */
const slowMs = fastMs / 2 / tolerance
const slowByClockMs = 5000
/** How many failed tests of a run of all tests run once more, alone. */
const mostAgain = 3

/**
 * Prints the sentences at the end. Returns the files whose mark is wrong, which only a run of all
 * tests finds out.
 */
export function summarize({ report, folder, groups, leftOut, isWhole, isAll, startedAt }) {
  if (!existsSync(report)) return []
  const { tests, counts } = JSON.parse(readFileSync(report, 'utf8'))
  const costs = costsOfFiles(tests, folder, groups)
  const { TEST_COSTS: costsFile } = process.env
  if (costsFile) writeFileSync(costsFile, JSON.stringify(Object.fromEntries(costs), null, 1))
  // While many other programs run, the same work takes more processor time.
  const [, load = 0] = loadavg()
  const isBusy = load > 4 * availableParallelism()
  const wrong = isWhole && !isBusy ? [...costs].flatMap(([file, cost]) => wrongMark(file, cost, isAll)) : []
  const lines = [
    ...wrong.map(({ file, text }) => `${file} ${text}`),
    '',
    closing(counts, performance.now() - startedAt),
  ]
  if (leftOut > 0)
    lines.push(
      `${leftOut} slow ${leftOut === 1 ? 'file was' : 'files were'} left out. \`npm run test:all\` runs all files.`,
    )
  process.stdout.write(`${lines.join('\n')}\n`)
  return wrong.map(({ file }) => file)
}

function closing({ passed, failed, skipped }, ms) {
  const time = ms < 90_000 ? `${Math.round(ms / 1000)} s` : `${(ms / 60_000).toFixed(1)} minutes`
  const aside =
    skipped > 0
      ? `, and ${number(skipped)} ${skipped === 1 ? 'was' : 'were'} skipped because this machine lacks what they need`
      : ''
  if (failed === 0) return `${passed === 1 ? 'The test' : `All ${number(passed)} tests`} passed in ${time}${aside}.`
  const again = 'The report above says why. `npm test -- FILE` runs the tests of one file again.'
  return `${number(failed)} of ${number(passed + failed)} tests failed in ${time}${aside}. ${again}`
}

const number = (value) => value.toLocaleString('en-US')

/** The processor time and the time by the clock of each file, in ms of a usual machine. */
function costsOfFiles(tests, folder, groups) {
  const result = new Map()
  groups.forEach((files, index) => {
    const path = join(folder, `${index + 1}.costs`)
    if (!existsSync(path)) return
    const { costs, slowness } = JSON.parse(readFileSync(path, 'utf8'))
    const own = tests.filter((test) => !test.isSkipped && filesOf(test, files).length > 0)
    let [at, file] = [-1, files[0]]
    for (const { name, usedMs, tookMs } of costs) {
      const isOf = (test) => test !== undefined && (name === test.name || name.startsWith(`${test.name} > `))
      if (!isOf(own[at]) || (name === own[at].name && name === own[at + 1]?.name)) {
        const next = own.findIndex((test, place) => place > at && isOf(test))
        if (next !== -1) {
          const since = files.indexOf(file)
          at = next
          file = filesOf(own[at], files).find((each) => files.indexOf(each) >= since) ?? file
        }
      }
      const cost = result.get(file) ?? { usedMs: 0, tookMs: 0, tests: 0 }
      cost.usedMs += usedMs / slowness
      cost.tookMs += tookMs
      cost.tests += 1
      result.set(file, cost)
    }
  })
  return result
}

/**
 * The files of the tests that failed, by the names of the tests. `undefined` when none failed, when
 * many did, or when a process ended before its tests: to run such files again says nothing new.
 */
export function failedFiles({ report, groups }) {
  if (!existsSync(report)) return undefined
  const failed = JSON.parse(readFileSync(report, 'utf8')).tests.filter(({ hasFailed }) => hasFailed)
  const found = failed.map((test) => [test.name, filesOf(test, groups.flat())])
  const isFew = failed.length > 0 && failed.length <= mostAgain
  return isFew && found.every(([, files]) => files.length > 0) ? new Map(found) : undefined
}

/** The file of a test; for a test of a shared module, the files that import it and name it. */
function filesOf({ file, name }, files) {
  const path = relative(root, file)
  if (path.endsWith('.test.ts')) return files.filter((each) => each === path)
  const subjects = name.split(': ').map((part) => `'${part}'`)
  return files.filter((each) => {
    const text = readFileSync(join(root, each), 'utf8')
    return text.includes(`/${basename(path)}'`) && subjects.some((subject) => text.includes(subject))
  })
}

/** Whether a file with this cost has "// Slow:" for a reason. */
export function needsMark({ usedMs, tookMs }) {
  return usedMs >= slowMs || tookMs >= slowByClockMs
}

function wrongMark(file, { usedMs, tookMs }, isAll) {
  const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`
  const isSlow = reasonOf(file, 'Slow') !== undefined
  // With long searches, the cost of a file says nothing about `npm test`.
  const used = `used ${seconds(usedMs)} of processor time`
  if (!isAll && !isSlow && usedMs > fastMs * tolerance) {
    const text = `${used}, of ${seconds(fastMs)}. Make it cheaper, or begin it with “// Slow: ${seconds(usedMs)}, WHY”.`
    return [{ file, text }]
  }
  if (isAll && isSlow && !needsMark({ usedMs, tookMs }))
    return [{ file, text: `is not slow: it ${used}. Take the line “// Slow:” out of it.` }]
  return []
}
