// Slow: 2 s, the program is built by two commands at once
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, rmSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import manifest from '../../package.json' with { type: 'json' }
import { root, startCommand } from '../support/command.ts'
import { until } from '../support/until.ts'

/**
 * A clone with packages and without a build. @returns starts `npm run gatehouse -- --version` there
 */
function freshClone(t: TestContext) {
  const clone = mkdtempSync(join(tmpdir(), 'gatehouse-clone-'))
  t.after(() => rmSync(clone, { recursive: true, force: true }))
  for (const path of [
    '.ci',
    'LICENSE',
    'examples/demo',
    'package.json',
    'package-lock.json',
    'packages',
    'schemas',
    'src',
  ])
    cpSync(join(root, path), join(clone, path), { recursive: true })
  execFileSync('cp', ['-al', join(root, 'node_modules'), clone])
  // Older than the packages.
  utimesSync(join(clone, 'package-lock.json'), 1, 1)
  return () => startCommand(t, ['--version'], { program: [process.execPath, join(clone, '.ci', 'gatehouse.mjs')] })
}

test('Of two commands of a fresh clone, one builds, and both run', async (t) => {
  const start = freshClone(t)

  const commands = [start(), start()]

  for (const command of commands) {
    assert.equal(await command.ended, 0, command.err())
    assert.ok(command.out().includes(manifest.version))
  }
  assert.deepEqual(commands.map(({ err }) => err()).sort(), ['', 'Building …\n'])
})

test('A command that is killed while it builds does not keep others from building', async (t) => {
  const start = freshClone(t)
  const killed = start()
  await until('it builds', () => killed.err() !== '')
  killed.child.kill('SIGKILL')
  await once(killed.child, 'exit')

  const command = start()

  assert.equal(await command.ended, 0, command.err())
  // The build of the killed command ends later.
  await killed.ended
})
