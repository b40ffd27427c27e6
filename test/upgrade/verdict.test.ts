import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { root } from '../support/command.ts'

interface VerdictModule {
  verdicts(): { readonly env: { readonly VERDICTS: string }; exitCode(code: number | null): number }
}

const { verdicts } = (await import(pathToFileURL(join(root, '.ci', 'verdict.mjs')).href)) as VerdictModule

for (const [what, lines, code, expected] of [
  ['tests that pass', [], 0, 0],
  ['tests that fail, and say nothing of the machine', [], 1, 1],
  ['tests of which one failed on a quiet machine', ['busy 1500 ms of 10 s: one', 'broken 20 ms of 10 s: two'], 1, 1],
  ['tests that failed on a busy machine only', ['busy 1500 ms of 10 s: one'], 1, 3],
  ['tests that were killed', [], null, 1],
] as const)
  test(`${what} end with ${expected}`, () => {
    const { env, exitCode } = verdicts()
    if (lines.length > 0) writeFileSync(env.VERDICTS, `${lines.join('\n')}\n`)

    assert.equal(exitCode(code), expected)
  })
