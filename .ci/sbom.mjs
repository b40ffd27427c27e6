// `npm run -s sbom > gatehouse.cdx.json`: the bill of materials of what runs in production, in
// CycloneDX, from package-lock.json.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './prepare.mjs'

const read = (file) => JSON.parse(readFileSync(join(root, file), 'utf8'))
const args = ['sbom', '--sbom-format=cyclonedx', '--sbom-type=application', '--package-lock-only']
const done = spawnSync('npm', args, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'], maxBuffer: 64 * 1024 * 1024 })
if (done.status !== 0) process.exit(1)
const bom = JSON.parse(done.stdout)

// With --omit=dev npm leaves out what is needed for development *and* in production, too (seen with
// 10.8 and 11.19).
const production = new Set()
for (const [path, { version, dev }] of Object.entries(read('package-lock.json').packages))
  if (path !== '' && dev !== true) production.add(`${path.split('node_modules/').at(-1)}@${version}`)
const { name, version } = read('package.json')
const kept = new Set([`${name}@${version}`])
bom.components = bom.components.filter((component) => {
  if (!production.has(`${component.name}@${component.version}`)) return false
  kept.add(component['bom-ref'])
  return true
})
bom.dependencies = bom.dependencies
  .filter(({ ref }) => kept.has(ref))
  .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.filter((other) => kept.has(other)) }))
// npm names it after the folder.
bom.metadata.component.name = name
process.stdout.write(`${JSON.stringify(bom, null, 2)}\n`)
