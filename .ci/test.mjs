// `npm test [-- FILE …]`: every *.test.ts below test/, or the files named, with Node's own test
// runner. esbuild bundles the tests of each process, because a process that transforms and loads
// each module separately needs twice the processor time to start.
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ensureBuild, ensurePackages, ensurePrograms, root, stop } from './prepare.mjs'

/** How many files run in one process at most: starting a process takes longer than most files. */
const filesPerProcess = 40

ensurePackages()
ensurePrograms()
ensureBuild()
const named = process.argv.slice(2)
const all = readdirSync(join(root, 'test'), { recursive: true }).map((path) => join('test', path))
for (const file of named) if (!existsSync(join(root, file))) stop(`There is no file ${file}.`)
const files = named.length > 0 ? named : all.filter((path) => path.endsWith('.test.ts')).sort()
const folder = join(root, 'node_modules', '.cache', `tests-${process.pid}`)
const entries = await bundle(groups(files))
// With the source maps, a stack trace names the place in the TypeScript file.
const options = ['--enable-source-maps', '--test', '--test-reporter=spec', '--test-concurrency=2']
options.push('--test-timeout=1200000')
const tests = spawn(process.execPath, [...options, ...entries], { cwd: root, stdio: 'inherit' })
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => tests.kill(signal))
tests.on('exit', (code) => {
  rmSync(folder, { recursive: true, force: true })
  process.exit(code ?? 1)
})

/**
 * Files that run in one process. A file that begins with "// Own process:" and a reason runs alone;
 * folders with many files have processes of their own, small folders share some.
 */
function groups(files) {
  const isAlone = (file) => readFileSync(join(root, file), 'utf8').startsWith('// Own process:')
  const alone = files.filter(isAlone).map((file) => [file])
  const filesOf = new Map()
  for (const file of files)
    if (!isAlone(file)) filesOf.set(dirname(file), [...(filesOf.get(dirname(file)) ?? []), file])
  const folders = [...filesOf.values()]
  const small = folders.filter(({ length }) => length < filesPerProcess).flat()
  return [...alone, ...[...folders.filter(({ length }) => length >= filesPerProcess), small].flatMap(parts)]
}

/** Splits a list of files into parts of about the same length. */
function parts(files) {
  const count = Math.ceil(files.length / filesPerProcess)
  const each = Math.ceil(files.length / count)
  return Array.from({ length: count }, (_, index) => files.slice(index * each, (index + 1) * each))
}

/**
 * Builds a module for each group, with its tests. What groups share is in further modules of the
 * folder. Resolves to the paths of the modules that the test runner starts.
 */
async function bundle(groups) {
  // Only here, because a fresh clone has no packages before.
  const { build } = await import('esbuild')
  const { schemaValidatorPlugin } = await import('./schema-validator.mjs')
  await build({
    absWorkingDir: root,
    entryPoints: groups.map(writeEntry),
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    packages: 'external',
    format: 'esm',
    platform: 'node',
    target: 'node22',
    sourcemap: true,
    sourcesContent: false,
    logLevel: 'warning',
    define: { 'import.meta': 'importMeta' },
    plugins: [schemaValidatorPlugin, { name: 'place', setup: keepPlace }],
  }).catch(() => {
    rmSync(folder, { recursive: true, force: true })
    stop('The tests cannot be bundled: see above.')
  })
  return groups.map((_, index) => join(folder, `${index + 1}.mjs`))
}

/** A source sees its own place in `import.meta`, not the place of the bundle. */
function keepPlace({ onLoad }) {
  onLoad({ filter: /\.m?ts$|\.mjs$/ }, async ({ path }) => {
    const text = await readFile(path, 'utf8')
    const place = { url: pathToFileURL(path).href, filename: path, dirname: dirname(path) }
    // In the first line, so that the numbers of the lines stay.
    const first = text.includes('import.meta') ? `const importMeta = ${JSON.stringify(place)};` : ''
    return { contents: first + text, loader: 'ts' }
  })
}

/**
 * The source of a module with the tests of several files. The first test waits until all files are
 * loaded.
 */
function writeEntry(files, index) {
  const write = (name, text) => writeFileSync(join(folder, name), text)
  const name = String(index + 1)
  mkdirSync(folder, { recursive: true })
  write(`${name}-files.ts`, files.map((file) => `import ${JSON.stringify(join(root, file))}\n`).join(''))
  write(
    `${name}.ts`,
    `import { before } from 'node:test'\nconst loaded = import('./${name}-files.ts')\nbefore(() => loaded)\nawait loaded\n`,
  )
  return join(folder, `${name}.ts`)
}
