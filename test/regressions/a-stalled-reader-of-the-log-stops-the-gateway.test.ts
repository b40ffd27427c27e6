import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { buildModule } from '../support/bundle.ts'

const log = buildModule('src/observe/writing-log.ts')

test('A process goes on although nothing reads its log, and another process has made the stream block', async (t) => {
  const program = `
    import { createLog } from '${log}'
    import { spawnSync } from 'node:child_process'
    import { setTimeout as wait } from 'node:timers/promises'
    const log = createLog({ level: 'info' })
    log.info('before')
    // Node.js resets O_NONBLOCK of the standard streams that a new process inherits.
    spawnSync('true', { stdio: 'inherit' })
    await wait(200)
    for (let n = 0; n < 10_000; n += 1) log.info('after', { n, padding: 'x'.repeat(300) })
    process.stderr.write('goes on')`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['ignore', 'pipe', 'pipe'] })
  t.after(() => child.kill('SIGKILL'))

  const [text] = await once(child.stderr, 'data', { signal: AbortSignal.timeout(20_000) })

  assert.equal(String(text), 'goes on')
})
