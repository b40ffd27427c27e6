import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { test } from 'node:test'
import { folderWith } from '../support/command-line.ts'
import { root } from '../support/command.ts'

test('A bench without redis-server says how to install it, and asks for no browser', (t) => {
  const folder = folderWith(t, {})
  // No program but the shell: neither Redis nor apt-get, which would install it.
  symlinkSync(execFileSync('sh', ['-c', 'command -v sh'], { encoding: 'utf8' }).trim(), join(folder, 'sh'))

  const bench = spawnSync(execPath, [join(root, '.ci', 'bench.mjs'), 'flood'], {
    env: { PATH: folder },
    encoding: 'utf8',
  })

  assert.equal(bench.status, 1)
  assert.equal(
    bench.stderr,
    'This command needs redis-server, which could not be installed. As root, run:\n  apt-get update && apt-get install -y redis-server\n',
  )
})
