// What each test costs, measured in the process that runs it.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { beforeEach } from 'node:test'

/** The length of a tick of /proc, in ms (`getconf CLK_TCK`). */
const tickMs = 10
/** What `work()` costs on a machine on which a second is a second, in ms. */
const usualWorkMs = 4.5
const record = Array.from({ length: 20 }, (_, at) => ({ name: `name ${at}`, at, values: [at, String(at)] }))

/**
 * Writes the costs of all tests into a file when the process ends: the name of each test with its
 * processor time and its time by the clock, and how slow this machine is.
 */
export function measureCosts(file) {
  // The first time, the compiler works too.
  work()
  const costs = []
  const samples = []
  let [name, usedBefore, timeBefore, sampledAt] = ['', 0, 0, -Infinity]
  const close = () => {
    costs.push({ name, usedMs: usedMs() - usedBefore, tookMs: performance.now() - timeBefore })
    // Other programs make a busy machine slower from second to second.
    if (performance.now() - sampledAt > 1000) {
      samples.push(work())
      sampledAt = performance.now()
    }
    ;[usedBefore, timeBefore] = [usedMs(), performance.now()]
  }
  // At the beginning of the next test, when everything of this one has ended.
  beforeEach(({ fullName }) => {
    close()
    name = fullName
  })
  process.on('exit', () => {
    close()
    const slowness = samples.reduce((sum, sample) => sum + sample) / samples.length
    writeFileSync(file, JSON.stringify({ costs: costs.slice(1), slowness }))
  })
}

/**
 * Resolves when the programs that the files have started are up, such as Chromium. Otherwise, the
 * first test would pay for them.
 */
export async function programsAreUp() {
  for (let times = 0; times < 20; times += 1) {
    const before = treeTicks('self', false)
    await new Promise((resolve) => setTimeout(resolve, 100))
    if (treeTicks('self', false) - before <= 2) return
  }
}

/** The processor time of this process and of all that it has started, in ms. */
function usedMs() {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000 + treeTicks('self', false) * tickMs
}

/**
 * The processor time of a process, of its children that have ended, and of those that run, in
 * ticks. Only Linux has these files.
 */
function treeTicks(pid, isCounted = true) {
  try {
    const numbers = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1].split(' ').map(Number)
    const own = isCounted ? numbers[11] + numbers[12] : 0
    return own + numbers[13] + numbers[14] + childrenOf(pid).reduce((sum, child) => sum + treeTicks(child), 0)
  } catch {
    // It has just ended.
    return 0
  }
}

function childrenOf(pid) {
  return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, 'latin1').split(' ').filter(Boolean),
  )
}

/** How many times as long as usually the same work takes now. */
function work() {
  const before = process.cpuUsage()
  for (let count = 0; count < 500; count += 1) JSON.parse(JSON.stringify(record))
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000 / usualWorkMs
}
