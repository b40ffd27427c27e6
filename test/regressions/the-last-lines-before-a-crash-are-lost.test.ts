import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'

const logModule = new URL('../../src/observe/log.ts', import.meta.url).href

for (const [how, end] of [
  ['an exception that nobody catches', `throw new Error('a bug')`],
  ['an exit', 'process.exit(1)'],
] as const)
  test(`lines that wait for company are never lost with the process: ${how}`, async (t) => {
    const program = `
      import { createLog } from '${logModule}'
      const log = createLog({ level: 'info' })
      for (const n of [1, 2, 3]) log.info('line', { n })
      ${end}`
    const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    t.after(() => child.kill('SIGKILL'))

    const written = await text(child.stdout)

    assert.deepEqual(written.match(/(?<="n":)\d/g), ['1', '2', '3'])
  })
