// The verdict of tests that need a machine which is not busy: see test/support/busy-verdict.ts.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The exit code when all that failed did so on a busy machine, as of `npm run test:chaos`. */
const couldNotJudge = 3

/** The environment of the tests, and what their exit code means. */
export function verdicts() {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-verdicts-'))
  const file = join(folder, 'verdicts')
  return {
    env: { VERDICTS: file },
    exitCode: (code) => {
      const lines = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
      rmSync(folder, { recursive: true, force: true })
      if (code === 0 || lines.length === 0 || !lines.every((line) => line.startsWith('busy '))) return code ?? 1
      process.stderr.write(`? could not judge: the machine was busy.\n${lines.join('\n')}\n`)
      return couldNotJudge
    },
  }
}
