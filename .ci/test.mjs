// `npm test [-- FILE …]`: every *.test.ts below test/, or the files named, with Node's own test runner.
import { spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { ensureBuild, ensurePackages, ensurePrograms, root } from './prepare.mjs'

ensurePackages()
ensurePrograms()
ensureBuild()
const named = process.argv.slice(2)
const all = readdirSync(join(root, 'test'), { recursive: true }).map((path) => join('test', path))
const files = named.length > 0 ? named : all.filter((path) => path.endsWith('.test.ts')).sort()
const options = ['--import', 'tsx', '--test', '--test-reporter=spec', '--test-concurrency=2', '--test-timeout=300000']
const tests = spawn(process.execPath, [...options, ...files], { cwd: root, stdio: 'inherit' })
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => tests.kill(signal))
tests.on('exit', (code) => process.exit(code ?? 1))
