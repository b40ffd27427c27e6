// What a fresh clone lacks, installed before anything else runs. Node's own modules only: nothing
// else is there yet.
import { spawnSync } from 'node:child_process'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('..', import.meta.url))
const at = (...parts) => join(root, ...parts)
const changedAt = (path) => (existsSync(path) ? statSync(path).mtimeMs : 0)

/**
 * Runs a command with its output on standard error, so that standard output stays the product's
 * own.
 */
export function run(command, args, options = {}) {
  const done = spawnSync(command, args, { cwd: root, stdio: ['ignore', 2, 2], ...options })
  return done.status === 0
}

/** Ends the process with an error. */
export function stop(message) {
  process.stderr.write(`${message}\n`)
  process.exit(1)
}

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
/** Whether the program runs on this version of Node.js: see src/main.ts. */
export const isSupported = major > 24 || (major === 24 && minor >= 9) || (major === 22 && minor >= 21)
/** Whether CI runs this major version: see src/core/node-private-parts.ts. */
export const isTested = isSupported && [22, 24, 26].includes(major)

/** The cache of the user, which all clones share. */
export const cacheFolder = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'gatehouse')

/** The longest time that a command waits for another one of the same clone, in ms. */
const longestWaitMs = 15 * 60 * 1000

/**
 * Does work that is still needed while no other command of this clone does such work. SQLite locks
 * the file with a lock of the system, which ends with its process.
 */
function alone(isNeeded, work) {
  if (!isNeeded()) return
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
  const lock = new DatabaseSync(at('dist.lock'), { timeout: longestWaitMs })
  lock.exec('BEGIN EXCLUSIVE')
  if (isNeeded()) work()
  lock.close()
}

/** The packages of package-lock.json, unless node_modules already holds them. */
export function ensurePackages() {
  if (!isSupported) stop(`This is Node.js ${process.versions.node}, which is too old. Use the npm script, or .ci/node.`)
  const installed = at('node_modules', '.package-lock.json')
  alone(
    () => changedAt(installed) < changedAt(at('package-lock.json')),
    () => installPackages(installed),
  )
}

function installPackages(installed) {
  // npm would empty the folder that a link leads to, which another clone uses.
  if (lstatSync(at('node_modules'), { throwIfNoEntry: false })?.isSymbolicLink()) {
    if (existsSync(installed)) return
    stop('node_modules is a link to a folder without packages: remove the link, or install them there.')
  }
  process.stderr.write('Installing packages …\n')
  if (!run('npm', ['ci', '--loglevel=error'])) stop('npm ci failed: see above.')
  const now = new Date()
  utimesSync(installed, now, now)
}

function newestSource(folder) {
  let newest = 0
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) newest = Math.max(newest, statSync(join(entry.parentPath, entry.name)).mtimeMs)
  return newest
}

/** dist/, unless it is newer than every source file. `npm run check` checks the types. */
export function ensureBuild() {
  alone(() => changedAt(at('dist', '.built')) <= newestInput(), build)
}

/** When a file was changed that dist/ is built from, in ms since the epoch. */
function newestInput() {
  const scripts = [
    'bundle.mjs',
    'bundle-rules.mjs',
    'bundled-packages.mjs',
    'fetch-classes.mjs',
    'schema-validator.mjs',
  ].map((file) => join('.ci', file))
  const files = ['schemas/gateway.schema.json', 'package-lock.json', ...scripts]
  return Math.max(
    newestSource(at('src')),
    newestSource(at('packages')),
    newestSource(at('examples', 'demo')),
    ...files.map((file) => changedAt(at(file))),
  )
}

function build() {
  process.stderr.write('Building …\n')
  const startedAt = new Date()
  const fresh = at(`dist.${process.pid}`)
  const isBuilt = run(process.execPath, [at('.ci', 'bundle.mjs'), fresh])
  if (isBuilt) {
    writeFileSync(join(fresh, '.built'), '')
    // A source that was saved while it was built is newer.
    utimesSync(join(fresh, '.built'), startedAt, startedAt)
    rmSync(at('dist'), { recursive: true, force: true })
    renameSync(fresh, at('dist'))
  }
  rmSync(fresh, { recursive: true, force: true })
  if (!isBuilt) stop('The build failed: see above.')
}

/**
 * The programs that run for real, which are packages of Debian with the same names. By default,
 * those of the tests. Without the headless shell, all tests use the whole Chromium, which takes
 * more processor time.
 */
export function ensurePrograms(programs = ['redis-server', 'chromium'], faster = ['chromium-headless-shell']) {
  const lacks = (program) => spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0
  const needed = programs.filter(lacks)
  const missing = [...needed, ...faster.filter(lacks)]
  if (missing.length === 0) return
  const byHand = `apt-get update && apt-get install -y ${missing.join(' ')}`
  const isInstalled = process.getuid?.() === 0 && !lacks('apt-get') && installPrograms(missing)
  if (!isInstalled && needed.length > 0)
    stop(`This command needs ${needed.join(' and ')}, which could not be installed. As root, run:\n  ${byHand}`)
}

function installPrograms(names) {
  process.stderr.write(`Installing ${names.join(' and ')} …\n`)
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const apt = 'apt-get -o Acquire::Retries=0 -o Acquire::http::Timeout=20'
  const install = `${apt} install -y -qq --no-install-recommends ${names.join(' ')}`
  // The lists of packages may be there, and up to date.
  return run('sh', ['-c', `${install} 2>/dev/null || { ${apt} update && ${install}; }`], { env })
}

/**
 * A Keycloak in the cache of the user. Maven downloads its distribution (140 MB) at the first run,
 * from the repository that Maven is configured with.
 * @returns its folder
 */
export function ensureKeycloak() {
  const { KEYCLOAK_HOME, KEYCLOAK_VERSION: version = '26.7.3' } = process.env
  const home = KEYCLOAK_HOME ?? join(cacheFolder, `keycloak-${version}`)
  if (existsSync(join(home, 'bin', 'kc.sh'))) return home
  mkdirSync(cacheFolder, { recursive: true })
  const artifact = `org.keycloak:keycloak-quarkus-dist:${version}:tar.gz`
  const archive = join(cacheFolder, `keycloak-quarkus-dist-${version}.tar.gz`)
  const isThere =
    run('mvn', ['-B', '-q', 'dependency:copy', `-Dartifact=${artifact}`, `-DoutputDirectory=${cacheFolder}`]) &&
    run('tar', ['-xzf', archive, '-C', cacheFolder])
  if (!isThere) stop('Keycloak could not be downloaded: see above.')
  return home
}
