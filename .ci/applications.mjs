// `npm run test:applications [-- NAME …]`: real applications behind a gateway, each as its page in
// docs/applications says. Outside `npm test`, because it downloads the applications: packages of
// Debian (as root), PyPI and npm. What is missing is said, and the other applications are tested.
import { spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { ensureBuild, ensurePackages, ensurePrograms, root, stop } from './prepare.mjs'

ensurePackages()
ensurePrograms()
ensureBuild()
const folder = join('test', 'applications')
const known = readdirSync(join(root, folder))
  .filter((name) => name.endsWith('.journey.ts'))
  .map((name) => name.replace('.journey.ts', ''))
const named = process.argv.slice(2)
const unknown = named.find((name) => !known.includes(name))
if (unknown !== undefined) stop(`There is no application "${unknown}". Known: ${known.join(', ')}.`)
const files = (named.length > 0 ? named : known).map((name) => join(folder, `${name}.journey.ts`))
const options = ['--import', 'tsx', '--test', '--test-reporter=spec', '--test-concurrency=1', '--test-timeout=600000']
const tests = spawn(process.execPath, [...options, ...files], { cwd: root, stdio: 'inherit' })
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => tests.kill(signal))
tests.on('exit', (code) => process.exit(code ?? 1))
