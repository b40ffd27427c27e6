// `npm run build`, and before `npm pack`: dist/ as the sources have it.
import { ensureBuild, ensurePackages } from './prepare.mjs'

ensurePackages()
ensureBuild()
