// Prints the path of the Node.js that commands of a clone run on: the one that runs this file, if
// it is version 24 or 26, otherwise 24 from the npm registry. It stays in the cache of the user.
// With INSTALLED_NODE=1, any supported version stays in use. Runs with Node.js 20.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { cacheFolder, isSupported, isTested, run, stop } from './prepare.mjs'

const version = '24.21.0'
/** Platform → the integrity of its package, which has the name `node-PLATFORM`. */
const packages = {
  'linux-x64': 'sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==',
  'linux-arm64': 'sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==',
}

const [major] = process.versions.node.split('.').map(Number)
const keepsInstalled = (isTested && major >= 24) || (isSupported && process.env['INSTALLED_NODE'] === '1')
process.stdout.write(keepsInstalled ? process.execPath : nodeOfRegistry())

/** The path of Node.js in the cache. */
function nodeOfRegistry() {
  const platform = `${process.platform}-${process.arch}`
  const home = join(cacheFolder, `node-${version}-${platform}`)
  const node = join(home, 'bin', 'node')
  if (existsSync(node)) return node
  const failure = packages[platform] === undefined ? `has none for ${platform}` : download(platform, home)
  if (failure === undefined) return node
  const message = `This is Node.js ${process.versions.node}. The npm registry could not provide Node.js 24: ${failure}.`
  if (!isSupported) stop(`${message}\nInstall Node.js 24 (https://nodejs.org/en/download), and repeat the command.`)
  process.stderr.write(
    `${message}\nGatehouse also supports ${process.versions.node}. To use it, set INSTALLED_NODE=1.\n`,
  )
  return process.execPath
}

/**
 * Another command may download at the same time, so the folder gets its name when it is complete.
 * Returns what failed.
 */
function download(platform, home) {
  process.stderr.write(`Downloading Node.js ${version} …\n`)
  try {
    mkdirSync(cacheFolder, { recursive: true })
  } catch (error) {
    return error.message
  }
  const folder = mkdtempSync(`${home}.`)
  try {
    const archive = join(folder, `node-${platform}-${version}.tgz`)
    const options = ['--loglevel=error', '--no-dry-run', '--fetch-retries=1', '--fetch-retry-mintimeout=1000']
    const pack = ['pack', `node-${platform}@${version}`, `--pack-destination=${folder}`, ...options]
    // Standard output would be the name of the archive.
    if (!run('npm', pack, { stdio: ['ignore', 'ignore', 2] })) return 'npm pack failed, see above'
    const integrity = `sha512-${createHash('sha512').update(readFileSync(archive)).digest('base64')}`
    if (integrity !== packages[platform]) return 'the integrity of the package is wrong'
    if (!run('tar', ['-xzf', archive, '-C', folder, 'package/bin/node', 'package/LICENSE']))
      return 'tar failed, see above'
    // The package is for systems with glibc.
    const { status, stdout } = spawnSync(join(folder, 'package', 'bin', 'node'), ['--version'], { encoding: 'utf8' })
    if (status !== 0 || stdout.trim() !== `v${version}`) return 'its program does not run here'
    renameSync(join(folder, 'package'), home)
  } catch (error) {
    if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') return error.message
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  return undefined
}
