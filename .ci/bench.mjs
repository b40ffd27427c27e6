// `npm run bench [-- --rounds N --seconds N]`: what the way through the gateway costs, beside other proxies.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { ensureBuild, ensurePackages, root } from './prepare.mjs'

ensurePackages()
ensureBuild()
const args = ['--import', 'tsx', join('bench', 'signed-in.ts'), ...process.argv.slice(2)]
process.exit(spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' }).status ?? 1)
