import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'

/** Where downloaded applications stay for the next run. */
const cache = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'gatehouse', 'applications')

/** What an application needs is not there, and this says what to do. The application is skipped. */
export class Missing extends Error {}

/**
 * Installs packages of Debian that are missing.
 * @param packages a file of each package
 * @param tried the package of the application, and the version that its preset was tried with
 * @throws {Missing}
 */
export function installDebian(
  packages: Readonly<Record<string, string>>,
  tried?: readonly [name: string, version: string],
): void {
  const missing = Object.keys(packages).filter((name) => !existsSync(packages[name] ?? ''))
  if (missing.length > 0) installMissing(missing)
  if (tried === undefined) return
  const [name, version] = tried
  const found = spawnSync('dpkg-query', ['-W', '-f', '${Version}', name], { encoding: 'utf8' }).stdout
  // Without the epoch. The version 6.1 is not 6.10.
  if (!`${found.replace(/^\d+:/, '').replaceAll(/\D/g, '.')}.`.startsWith(`${version}.`))
    throw new Missing(`was tried with version ${version}, and this machine has ${found}`)
}

function installMissing(names: readonly string[]): void {
  const byHand = `apt-get update && apt-get install -y --no-install-recommends ${names.join(' ')}`
  if (process.getuid?.() !== 0 || spawnSync('sh', ['-c', 'command -v apt-get']).status !== 0)
    throw new Missing(`needs the packages ${names.join(', ')}. As root on Debian, run: ${byHand}`)
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  if (spawnSync('sh', ['-c', byHand], { env, stdio: ['ignore', 2, 2] }).status !== 0)
    throw new Missing(`the packages could not be installed. As root, run: ${byHand}`)
}

/**
 * Installs packages of PyPI into a virtual environment, with uv: pip takes many minutes to
 * resolve the dependencies of Airflow.
 * @returns the folder of its programs
 * @throws {Missing}
 */
export function installPython(name: string, ...packages: readonly string[]): string {
  return once(name, (folder) => [
    ['python3', ['-m', 'venv', folder]],
    [join(folder, 'bin', 'pip'), ['install', '--quiet', '--disable-pip-version-check', 'uv']],
    [join(folder, 'bin', 'uv'), ['pip', 'install', '--quiet', '--python', folder, ...packages]],
  ])('bin')
}

/**
 * Installs packages of npm.
 * @returns the folder of their programs
 * @throws {Missing}
 */
export function installNode(name: string, ...packages: readonly string[]): string {
  return once(name, (folder) => [
    ['npm', ['install', '--prefix', folder, '--no-audit', '--no-fund', '--loglevel=error', ...packages]],
  ])('node_modules', '.bin')
}

/**
 * Builds a program of Go.
 * @param version `name/path@version`
 * @returns its folder
 * @throws {Missing}
 */
export function installGo(name: string, version: string): string {
  const inTime = ['--kill-after=10', '900', 'env']
  return once(name, (folder) => [['timeout', [...inTime, `GOBIN=${join(folder, 'bin')}`, 'go', 'install', version]]])(
    'bin',
  )
}

type Command = readonly [program: string, args: readonly string[]]

/** Runs commands that fill a folder, unless an earlier run has done so. */
function once(name: string, commandsFor: (folder: string) => readonly Command[]) {
  const folder = join(cache, name)
  const done = join(folder, '.complete')
  if (!existsSync(done)) {
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder, { recursive: true })
    for (const [program, args] of [...commandsFor(folder), ['touch', [done]] as const])
      if (spawnSync(program, args, { stdio: ['ignore', 2, 2] }).status !== 0)
        throw new Missing(`"${program} ${args.join(' ')}" failed`)
  }
  return (...path: readonly string[]) => join(folder, ...path)
}
