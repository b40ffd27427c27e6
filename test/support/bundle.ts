import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { after } from 'node:test'
import { pathToFileURL } from 'node:url'
import { buildSync } from 'esbuild'
import { root } from './command.ts'

/** The modules of the built program, without the demo. */
export function bundledModules(): { readonly name: string; readonly text: string }[] {
  const names = readdirSync(join(root, 'dist')).filter((name) => /\.c?js$/.test(name))
  return names.map((name) => ({ name, text: readFileSync(join(root, 'dist', name), 'utf8') }))
}

/** The files that the built program was made of. esbuild names each of them before its code. */
export function bundledFiles(): string[] {
  const named = /^(?:\/\/ | {2}")((?:src|node_modules)\/[^\s"]+)(?:$|"\()/gm
  return bundledModules().flatMap(({ text }) => [...text.matchAll(named)].map(([, path]) => String(path)))
}

/**
 * The folders of the packages that the built program contains, as package-lock.json writes them.
 */
export function bundledPackages(): string[] {
  const folder = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/
  return [...new Set(bundledFiles().flatMap((path) => folder.exec(path)?.[0] ?? []))].sort()
}

/**
 * Builds a module of the sources for processes that a test starts. Returns its URL.
 * @param source the path below the root
 */
export function buildModule(source: string): string {
  // There it finds the packages.
  const cache = join(root, 'node_modules', '.cache')
  mkdirSync(cache, { recursive: true })
  const folder = mkdtempSync(join(cache, 'module-'))
  after(() => rmSync(folder, { recursive: true, force: true }))
  const outfile = join(folder, 'module.mjs')
  buildSync({
    entryPoints: [join(root, source)],
    outfile,
    bundle: true,
    packages: 'external',
    format: 'esm',
    platform: 'node',
  })
  return pathToFileURL(outfile).href
}
