// `npm run test:chaos [-- OPTION …]`: builds the gateway, and runs chaos/main.ts.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import process from 'node:process'
import { ensureBuild, ensurePackages, ensurePrograms, root } from './prepare.mjs'

ensurePackages()
ensurePrograms()
ensureBuild()
const args = ['--import', 'tsx', join('chaos', 'main.ts'), ...process.argv.slice(2)]
const run = spawn(process.execPath, args, { cwd: root, stdio: 'inherit' })
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => run.kill(signal))
run.on('exit', (code) => process.exit(code ?? 1))
