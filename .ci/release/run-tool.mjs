// Runs the programs that a release needs, and finds those that are missing.
import { spawnSync } from 'node:child_process'
import process from 'node:process'
import { root, stop } from '../prepare.mjs'

/** Program → the package of Debian that has it. */
const tools = { git: 'git', tar: 'tar', gzip: 'gzip', npm: 'npm', 'dpkg-deb': 'dpkg' }

/** Ends the process when a program is missing, before anything is built. */
export function requireTools() {
  const version = (tool) => spawnSync(tool, ['--version'], { encoding: 'utf8' })
  const missing = Object.keys(tools).filter((tool) => version(tool).status !== 0)
  if (missing.length > 0)
    stop(
      `The release needs ${missing.join(' and ')}. On Debian: apt-get install ${missing.map((tool) => tools[tool]).join(' ')}`,
    )
  if (!version('tar').stdout.includes('GNU tar')) stop('The release needs GNU tar, which can sort what it packs.')
}

/**
 * The environment of every program: what a person has set, such as TAR_OPTIONS or TZ, changes no
 * byte of an artefact.
 */
function environment(epoch) {
  const { PATH, HOME } = process.env
  return { PATH, HOME, LC_ALL: 'C', TZ: 'UTC', ...(epoch !== undefined && { SOURCE_DATE_EPOCH: String(epoch) }) }
}

/**
 * @param options `epoch`: the time of the commit; `cwd`, `input` as for spawnSync
 * @returns the standard output
 * @throws {Error} with the standard error of a program that fails
 */
export function runTool(command, args, { epoch, ...options } = {}) {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd: root,
    env: environment(epoch),
    encoding: 'utf8',
    maxBuffer: 256 * 1024 * 1024,
    ...options,
  })
  if (error !== undefined) throw error
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${String(stderr).trim()}`)
  return stdout
}
