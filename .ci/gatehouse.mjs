// The command of a clone: installs and builds what is missing, then is `gatehouse` itself, in this
// very process, so that signals reach it.
import { join } from 'node:path'
import { ensureBuild, ensurePackages, root } from './prepare.mjs'

ensurePackages()
ensureBuild()
// Workers are started as the built program: they have nothing to install or to build.
process.argv[1] = join(root, 'dist', 'main.js')
await import('../dist/main.js')
