// Runs a file of tests, in a group of processes with the servers that it starts.
import { spawn } from 'node:child_process'
import process from 'node:process'

let running

/** Runs the tests until one fails, or until the time is over. */
export function runTests(entry, { cwd, env, limitMs }) {
  const startedAt = performance.now()
  return new Promise((resolve) => {
    const tests = spawn(process.execPath, ['--test-reporter=tap', entry], {
      ...{ cwd, env, detached: true },
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    running = tests.pid
    const timer = setTimeout(endTests, limitMs)
    let output = ''
    tests.stdout.on('data', (data) => {
      output = output.slice(-100) + data
      if (/^ *not ok /m.test(output)) endTests()
    })
    // Not before the exit, because what ends these tests must not end the next ones.
    tests.on('exit', (code) => {
      endTests()
      clearTimeout(timer)
      resolve({ isFailed: code !== 0, ms: performance.now() - startedAt })
    })
  })
}

export function endTests() {
  if (running === undefined) return
  try {
    process.kill(-running, 'SIGKILL')
  } catch {
    // All have ended.
  }
  running = undefined
}
