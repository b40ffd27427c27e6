// `npm run audit:bundled`: the known vulnerabilities of the packages whose code is in the program.
// `npm audit --omit=dev` examines none of them, because the build bundles development dependencies.
// Exits with 1 if there are any, and with 2 if the registry does not respond. `npm run
// audit:bundled -- FILE` reads the output of `npm audit --json` from a file.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { ensureBuild, ensurePackages, root } from './prepare.mjs'

ensurePackages()
ensureBuild()
const { components } = JSON.parse(readFileSync(join(root, 'dist', 'gatehouse.cdx.json'), 'utf8'))
const bundled = new Map(components.map(({ name, version }) => [name, version]))

const [file] = process.argv.slice(2)
const output =
  file === undefined
    ? spawnSync('npm', ['audit', '--json'], { cwd: root, encoding: 'utf8' }).stdout
    : readFileSync(file, 'utf8')
const { vulnerabilities, message } = JSON.parse(output)
if (vulnerabilities === undefined) {
  process.stderr.write(`The registry did not respond to npm audit: ${message ?? output}\n`)
  process.exit(2)
}
/** The advisories about a package. A text in `via` names another package that has one. */
const advisoriesOf = (name) => (vulnerabilities[name]?.via ?? []).filter((via) => typeof via === 'object')
const found = [...bundled].flatMap(([name, version]) =>
  advisoriesOf(name).map(({ title, severity, url }) => `${name} ${version}: ${title} (${severity}) ${url}`),
)
const others = Object.keys(vulnerabilities).filter((name) => !bundled.has(name))
process.stdout.write(`${bundled.size} packages are bundled. Known vulnerabilities: ${found.length}\n`)
for (const line of found) process.stdout.write(`${line}\n`)
if (others.length > 0) process.stdout.write(`Not in the program: ${others.join(', ')}\n`)
process.exit(found.length > 0 ? 1 : 0)
