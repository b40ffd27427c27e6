// `npm run -s sbom > gatehouse.cdx.json`: the bill of materials of the program, in CycloneDX. The
// build writes it.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { ensureBuild, ensurePackages, root } from './prepare.mjs'

ensurePackages()
ensureBuild()
process.stdout.write(readFileSync(join(root, 'dist', 'gatehouse.cdx.json')))
