// Formatting, types, the linter, and the workflows. Everything else that can be checked is a test.
// `npm run lint:fix` lets the linter fix what it can, and formats the result.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { codeLines } from './code-lines.mjs'
import { ensurePackages, root } from './prepare.mjs'

ensurePackages()
const isFixing = process.argv.includes('--fix')
const tool = (...parts) => join(root, 'node_modules', ...parts)
// The folders are named so that the linter never enters node_modules, which may be a link.
const lint = [
  tool('oxlint', 'bin', 'oxlint'),
  ...(isFixing ? ['--fix'] : []),
  '.ci',
  'bench',
  'chaos',
  'examples/demo',
  'src',
  'packages',
  'test',
]
const format = [tool('prettier', 'bin', 'prettier.cjs'), isFixing ? '--write' : '--check', '--log-level=warn', '.']
const types = [tool('typescript', 'bin', 'tsc'), '-p', '.']
const isGood = (args) => spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' }).status === 0
// What the linter leaves to a person does not keep the rest from being formatted.
if (isFixing) process.exit([lint, format].map(isGood).every(Boolean) ? 0 : 1)
if (![format, types, lint].every(isGood)) process.exit(1)
/** Programs that are not packages of npm examine the workflows where they are installed. */
const workflows = [
  ['actionlint', []],
  ['zizmor', ['--offline', '--quiet', '.github']],
]
for (const [program, args] of workflows) {
  const { error, status } = spawnSync(program, args, { cwd: root, stdio: 'inherit' })
  if (error?.code === 'ENOENT') process.stdout.write(`${program} is not installed: the workflows were not examined.\n`)
  else if (status !== 0) process.exit(1)
}
const count = codeLines(join(root, 'src')).toLocaleString('en-US')
process.stdout.write(`Formatting, types and lint rules are good. src has ${count} lines of code.\n`)
