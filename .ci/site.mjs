// `npm run docs [-- --base PATH] [-- --check]`: the documentation as a site, in site/. It has a
// folder for each version: one for each tag vX.Y.Z, built from that tag, and main, which is this
// checkout. VitePress has its own lock file in .ci/site, because only this command needs it.
import { spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { ensurePackages, ensurePrograms, root, run, stop } from './prepare.mjs'

const tool = join(root, '.ci', 'site')
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const { values } = parseArgs({
  options: {
    base: { type: 'string', default: `/${/([^/]+)\.git$/.exec(manifest.repository.url)?.[1]}/` },
    check: { type: 'boolean', default: false },
  },
})
const { base } = values
if (!/^\/(?:[\w.~-]+\/)*$/.test(base)) stop('--base must be a path that begins and ends with "/".')

ensurePackages()
if (!existsSync(join(tool, 'node_modules', 'vitepress')))
  if (!run('npm', ['ci', '--ignore-scripts', '--loglevel=error'], { cwd: tool })) stop('npm ci failed: see above.')

const sources = mkdtempSync(join(tmpdir(), 'gatehouse-site-'))
process.on('exit', () => rmSync(sources, { recursive: true, force: true }))
const fresh = join(root, 'site.partial')
rmSync(fresh, { recursive: true, force: true })
mkdirSync(fresh)

/** Released versions, the newest first. */
const released = gitLines('tag', '--list', 'v[0-9]*', '--sort=-version:refname').map((tag) => tag.slice(1))
/**
 * A check builds the next release too, from this checkout: both the pages and the way between
 * versions.
 */
const next = values.check && !released.includes(manifest.version) ? [manifest.version] : []
const versions = [...next, ...released, 'main']
for (const version of versions) build(version)
writeFileSync(join(fresh, 'index.html'), redirectTo(`${base}${versions[0]}/`))
rmSync(join(fresh, '.cache'), { recursive: true, force: true })
const faults = versions.flatMap((version) => brokenLinks(join(fresh, version), `${base}${version}/`))
if (faults.length > 0) stop(`${faults.join('\n')}\nThe site has links without a target.`)
rmSync(join(root, 'site'), { recursive: true, force: true })
renameSync(fresh, join(root, 'site'))
process.stdout.write(`The site is in site/, for ${base}: ${versions.join(', ')}.\n`)
if (values.check) open()

function gitLines(...args) {
  // In a container of a CI system, the checkout may belong to another user.
  const { stdout, status } = spawnSync('git', ['-c', `safe.directory=*`, ...args], { cwd: root, encoding: 'utf8' })
  if (status !== 0) stop(`git ${args[0]} failed: the versions are tags of this clone.`)
  return stdout.split('\n').filter((line) => line !== '')
}

/** Builds the folder of a version. VitePress keeps state, so each version has its own process. */
function build(version) {
  const env = {
    ...process.env,
    SITE_SOURCE: version === 'main' || next.includes(version) ? root : filesOf(`v${version}`),
    SITE_VERSION: version,
    SITE_VERSIONS: versions.join(','),
    SITE_BASE: base,
    SITE_OUT: join(fresh, version),
  }
  if (!run(process.execPath, [join(tool, 'node_modules', 'vitepress', 'bin', 'vitepress.js'), 'build', tool], { env }))
    stop(`The site of ${version} cannot be built: see above.`)
}

/** The files of a tag, in a folder. */
function filesOf(tag) {
  const folder = join(sources, tag)
  mkdirSync(folder)
  if (!run('sh', ['-c', 'git -c safe.directory=* archive "$1" | tar -x -C "$2"', 'sh', tag, folder]))
    stop(`${tag} cannot be read.`)
  return folder
}

/** A page that leads to another one. */
function redirectTo(url) {
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>Gatehouse</title><meta http-equiv="refresh" content="0; url=${url}"><a href="${url}">Gatehouse</a></html>\n`
}

/**
 * The links of a folder whose page or heading is missing. VitePress itself does not check headings.
 */
function brokenLinks(folder, path) {
  const names = readdirSync(folder, { recursive: true })
  const isPage = (name) => name.endsWith('.html') && name !== '404.html'
  const files = new Set(names.filter((name) => /\.\w+$/.test(name) && !isPage(name)).map((name) => `${path}${name}`))
  const pages = new Map(
    names.filter(isPage).map((name) => [`${path}${name}`, readFileSync(join(folder, name), 'utf8')]),
  )
  const ids = new Map(
    [...pages].map(([url, html]) => [url, new Set([...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id))]),
  )
  return [...pages].flatMap(([from, html]) =>
    [...html.matchAll(/ href="([^"]+)"/g)].flatMap(([, href]) => {
      const { origin, pathname, hash } = new URL(href, `http://site${from}`)
      if (origin !== 'http://site' || !pathname.startsWith(path)) return []
      if (files.has(pathname)) return []
      const page = pathname.endsWith('/') ? `${pathname}index.html` : pathname
      const found = ids.get(page) ?? ids.get(`${page}.html`)
      if (found === undefined) return [`${from}: ${href}: there is no such page`]
      const id = decodeURIComponent(hash.slice(1))
      return id === '' || found.has(id) ? [] : [`${from}: ${href}: there is no such heading`]
    }),
  )
}

/** Opens the site in Chromium, at the path that it is built for. */
function open() {
  ensurePrograms()
  const env = { ...process.env, SITE_BASE: base, SITE_VERSIONS: versions.join(',') }
  const test = ['--import', 'tsx', '--test', '--test-reporter=spec', join('test', 'site', 'opened.ts')]
  process.exit(spawnSync(process.execPath, test, { cwd: root, stdio: 'inherit', env }).status ?? 1)
}
