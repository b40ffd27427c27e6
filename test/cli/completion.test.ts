import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { offeredCommands } from '../../src/cli/completion.ts'
import { help } from '../../src/cli/help.ts'
import { main } from '../../src/cli/main.ts'
import { gatehouse } from '../support/command.ts'

const [program, ...first] = gatehouse
const printed = (what: string) => execFileSync(program, [...first, 'completion', what], { encoding: 'utf8' })

/** What bash offers for the last of these words. */
function offeredByBash(script: string, ...words: readonly string[]): readonly string[] {
  const line = `${script}\nCOMP_WORDS=(gatehouse "$@"); COMP_CWORD=$#; _gatehouse; printf '%s\\n' "\${COMPREPLY[@]}"`
  return execFileSync('bash', ['-c', line, 'bash', ...words], { encoding: 'utf8' })
    .split('\n')
    .filter((each) => each !== '')
}

test('bash completes commands, their options, and files', () => {
  const script = printed('bash')

  assert.deepEqual(offeredByBash(script, 'ch'), ['check'])
  assert.deepEqual(offeredByBash(script, '--config', 'gateway.yaml', 'exp'), ['explain'])
  assert.deepEqual(offeredByBash(script, 'check', '--fo').toSorted(), ['--for', '--format'])
  assert.deepEqual(offeredByBash(script, 'import', '--ou'), ['--out'])
  assert.deepEqual(offeredByBash(script, 'import', 'oauth2'), ['oauth2-proxy'])
  assert.deepEqual(offeredByBash(script, 'completion', 'z'), ['zsh'])
  assert.deepEqual(offeredByBash(script, 'check', '--config', 'gateway.ex'), ['gateway.example.yaml'])
})

for (const shell of ['bash', 'zsh', 'fish'] as const)
  test(`The completion for ${shell} is a valid script, where ${shell} is installed`, (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'gatehouse-completion-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    writeFileSync(join(folder, 'script'), printed(shell))
    const { status, error, stderr } = spawnSync(shell, ['-n', join(folder, 'script')], { encoding: 'utf8' })
    if (error !== undefined) return t.skip(`${shell} is not installed`)

    assert.deepEqual([status, stderr], [0, ''])
  })

test('All commands are offered, with the options that they have', async () => {
  const commands = offeredCommands()
  for (const { name, summary } of commands) assert.notEqual(summary, '', name)
  assert.deepEqual(new Set(commands.map(({ name }) => name)), new Set([...Object.keys(help), 'help', 'version']))

  for (const { name, options } of commands)
    for (const option of options) {
      // Each command reads its options before anything else, and ends with its help text here.
      const given = `--${option.name}${option.takesValue ? '=text' : ''}`
      assert.equal(await main([name, given, '--help']), 0, `${name} ${given}`)
    }
})

test('The manual page has the help text of each command', () => {
  const page = printed('man')

  assert.match(page, /^\.TH GATEHOUSE 1 /)
  for (const name of Object.keys(help)) assert.ok(page.includes(`\n.SS ${name}\n`), name)
  assert.doesNotMatch(page, /^'/m)
})
