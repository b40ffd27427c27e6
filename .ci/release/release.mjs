// `npm run release -- --dry-run`: everything of a release that needs no network, in release/.
// .github/workflows/release.yml runs it with `--tag`, and publishes what it built.
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { ensurePackages, root, stop } from '../prepare.mjs'
import { requireTools } from './run-tool.mjs'

const usage = `Usage:
  npm run release -- --dry-run              builds all artefacts in release/, twice, and compares them
  npm run release -- --dry-run --once       builds them once
  npm run release -- --tag vX.Y.Z           the same for a tag: Unreleased must be empty
  npm run release -- --set-version X.Y.Z    writes the version in every place`

let options
try {
  const [boolean, string] = [{ type: 'boolean' }, { type: 'string' }]
  options = parseArgs({ options: { 'dry-run': boolean, once: boolean, tag: string, 'set-version': string } }).values
} catch (error) {
  stop(`${error.message}\n${usage}`)
}
if (Object.keys(options).length !== 1 && !(options['dry-run'] && options.once)) stop(usage)
requireTools()
ensurePackages()
// These modules load packages.
const { filesBelow, normalize, write, writeSums } = await import('./archive.mjs')
const { releaseNotes } = await import('./changelog.mjs')
const { checkRelease } = await import('./checks.mjs')
const { writeCharts } = await import('./charts.mjs')
const { writeDebianPackage } = await import('./debian.mjs')
const { readIdentity } = await import('./identity.mjs')
const { writeImageLayers } = await import('./image.mjs')
const { writeNpmPackage } = await import('./npm-package.mjs')
const { runTool } = await import('./run-tool.mjs')
const { isVersion, setVersion } = await import('./versions.mjs')

const say = (text) => process.stderr.write(`${text}\n`)

if (options['set-version'] !== undefined) {
  if (!isVersion(options['set-version'])) stop('A version is MAJOR.MINOR.PATCH, such as 1.2.3.')
  setVersion(options['set-version'])
  say('Next: the section of CHANGELOG.md, and the rendered charts (docs/releasing.md).')
  process.exit(0)
}

/** What editors and catalogues of schemas need (SchemaStore, src/api/json/catalog.json). */
function writeSchema({ identity, source, out }) {
  cpSync(join(source, 'schemas', 'gateway.schema.json'), join(out, 'gateway.schema.json'))
  const entry = {
    name: 'Gatehouse',
    description: 'Configuration of the authentication gateway Gatehouse',
    fileMatch: ['gatehouse.yaml', 'gatehouse.yml', '**/gatehouse/gateway.yaml', '**/gatehouse/gateway.yml'],
    url: `${identity.rawUrl}/schemas/gateway.schema.json`,
  }
  write(join(out, 'schemastore-entry.json'), `${JSON.stringify(entry, null, 2)}\n`)
}

/** The program as all artefacts have it: without demo and source maps. */
function buildProgram(work, source, identity, epoch) {
  const program = join(work, 'program')
  runTool(process.execPath, [join('.ci', 'bundle.mjs'), program])
  for (const name of ['demo', ...filesBelow(program).filter((name) => name.endsWith('.map'))])
    rmSync(join(program, name), { recursive: true, force: true })
  normalize(program, epoch)
  runTool('chmod', ['a+x', join(program, 'main.js')])
  const said = runTool(process.execPath, [join(program, 'main.js'), '--version']).trim()
  if (said !== identity.version)
    throw new Error(`gatehouse --version prints ${said}, but package.json has ${identity.version}.`)
  return program
}

/** Builds all artefacts of the commit in a folder. */
function build(folder, identity, revision) {
  const epoch = Number(runTool('git', ['log', '-1', '--format=%ct', revision]))
  const [work, out] = [join(folder, 'work'), join(folder, 'out')]
  const source = join(work, 'source')
  mkdirSync(source, { recursive: true })
  mkdirSync(out)
  const tree = runTool('git', ['archive', '--format=tar', revision], { encoding: 'buffer' })
  runTool('tar', ['--extract', '--file=-'], { cwd: source, input: tree })
  normalize(source, epoch)
  const program = buildProgram(work, source, identity, epoch)
  const parts = { identity, source, program, work, out, epoch, revision }
  writeNpmPackage(parts)
  writeImageLayers(parts)
  writeCharts(parts)
  writeDebianPackage(parts)
  writeSchema(parts)
  cpSync(join(program, 'gatehouse.cdx.json'), join(out, `gatehouse-${identity.version}.cdx.json`))
  write(join(out, 'RELEASE_NOTES.md'), releaseNotes(identity))
  writeSums(out)
  normalize(out, epoch)
  return out
}

/** Builds the artefacts, and moves them to release/ when they are complete. */
function buildRelease(identity) {
  const revision = runTool('git', ['rev-parse', 'HEAD']).trim()
  const [partial, done] = [join(root, 'release.partial'), join(root, 'release')]
  if (existsSync(partial)) say('An earlier run was interrupted: its files are removed.')
  rmSync(partial, { recursive: true, force: true })
  // Both folders have the same depth, and different permissions of new files.
  const masks = options.once ? [process.umask()] : [0o022, 0o077]
  const builds = masks.map((mask, index) => {
    process.umask(mask)
    say(`Building ${identity.tag} of ${revision.slice(0, 12)}, ${['first', 'second'][index]} time …`)
    return build(join(partial, String(index + 1)), identity, revision)
  })
  const [sums, others = sums] = builds.map((folder) => readFileSync(join(folder, 'SHA256SUMS'), 'utf8'))
  if (sums !== others) throw new Error(`two builds differ:\n${sums}\n${others}\nCompare them in release.partial/.`)
  rmSync(done, { recursive: true, force: true })
  renameSync(builds[0], done)
  rmSync(partial, { recursive: true })
  process.stdout.write(sums)
  say(`release/ has the artefacts.${options.once ? '' : ' Both builds have the same bytes.'}`)
}

try {
  const identity = readIdentity()
  const { errors, warnings } = checkRelease(identity, options.tag)
  for (const warning of warnings) say(`warning: ${warning}`)
  if (errors.length > 0) stop(errors.map((error) => `error: ${error}`).join('\n'))
  buildRelease(identity)
} catch (error) {
  stop(`error: ${error.message}`)
}
