// `npm run test:migrating [-- NAME …]`: the configurations of docs/migrating in the programs that
// they are for, beside a gateway with ours. Outside `npm test`, because it downloads the programs:
// packages of Debian (as root) and a module of Go. What is missing is said.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import process from 'node:process'
import { ensureBuild, ensurePackages, root, stop } from './prepare.mjs'

const known = ['mod-auth-openidc', 'oauth2-proxy']
const named = process.argv.slice(2)
const unknown = named.find((name) => !known.includes(name))
if (unknown !== undefined) stop(`There is no program "${unknown}". Known: ${known.join(', ')}.`)
ensurePackages()
ensureBuild()
const options = ['--import', 'tsx', '--test', '--test-reporter=spec', '--test-timeout=3600000']
const files = (named.length > 0 ? named : known).map((name) => join('test', 'migrating', `${name}.ts`))
const tests = spawn(process.execPath, [...options, ...files], { cwd: root, stdio: 'inherit' })
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => tests.kill(signal))
tests.on('exit', (code) => process.exit(code ?? 1))
