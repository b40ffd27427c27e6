// Formatting and types. Everything else that can be checked is a test.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { ensurePackages, root } from './prepare.mjs'

ensurePackages()
const tool = (...parts) => join(root, 'node_modules', ...parts)
for (const args of [
  [tool('prettier', 'bin', 'prettier.cjs'), '--check', '--log-level=warn', '.'],
  [tool('typescript', 'bin', 'tsc'), '-p', '.'],
]) {
  const done = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' })
  if (done.status !== 0) process.exit(1)
}
process.stdout.write('Formatting and types are good.\n')
