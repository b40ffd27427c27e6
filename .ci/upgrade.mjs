// `npm run test:upgrade [-- --from REF]`: builds the gateway of another commit, and runs
// test/upgrade/rolling.ts: replicas of both on one Redis. Default: the latest release, or the
// commit below while there is none.
import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { ensureBuild, ensurePackages, ensurePrograms, root, run, stop } from './prepare.mjs'
import { verdicts } from './verdict.mjs'

/** The last commit before old and new versions were tested together. 0.1.0 has its formats. */
const beforeReleases = 'b96216ea5eb58a3a92d5b1ca125632eaf0571d72'

const git = (...args) => spawnSync('git', args, { cwd: root, encoding: 'utf8' }).stdout.trim()
const { values } = parseArgs({ options: { from: { type: 'string' } } })
const [latest] = git('tag', '--list', 'v*', '--sort=-v:refname', '--no-contains', 'HEAD').split('\n')
const from = values.from ?? (latest || beforeReleases)
const commit = git('rev-parse', '--verify', '--quiet', `${from}^{commit}`)
if (commit === '') stop(`There is no commit ${from} in this clone: git fetch --unshallow --tags`)

ensurePackages()
ensurePrograms()
ensureBuild()
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-upgrade-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
const old = join(folder, 'old')
mkdirSync(old)
process.stderr.write(`Building ${from} …\n`)
const archive = join(folder, 'old.tar')
const isBuilt =
  run('git', ['archive', '--output', archive, commit]) &&
  run('tar', ['-xf', archive, '-C', old]) &&
  run('npm', ['ci', '--ignore-scripts', '--loglevel=error'], { cwd: old }) &&
  run(process.execPath, [join(old, '.ci', 'build.mjs')], { cwd: old })
if (!isBuilt) stop(`${from} cannot be built: see above.`)

const options = ['--import', 'tsx', '--test', '--test-reporter=spec', '--test-timeout=900000']
const { env, exitCode } = verdicts()
const tests = spawn(process.execPath, [...options, join('test', 'upgrade', 'rolling.ts')], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, ...env, OLD_GATEHOUSE: join(old, 'dist', 'main.js') },
})
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => tests.kill(signal))
tests.on('exit', (code) => process.exit(exitCode(code)))
