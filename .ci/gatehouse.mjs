// The command of a clone: installs and builds what is missing, then is `gatehouse` itself, in this very process, so that
// signals reach it.
import { ensureBuild, ensurePackages } from './prepare.mjs'

ensurePackages()
ensureBuild()
await import('../dist/main.js')
