// `npm test [-- FILE …]`: every *.test.ts below test/, or the files named, with Node's own test
// runner.
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ensureBuild, ensurePackages, ensurePrograms, root, stop } from './prepare.mjs'

/** How many files run in one process at most: starting a process takes longer than most files. */
const filesPerProcess = 20

ensurePackages()
ensurePrograms()
ensureBuild()
const named = process.argv.slice(2)
const all = readdirSync(join(root, 'test'), { recursive: true }).map((path) => join('test', path))
for (const file of named) if (!existsSync(join(root, file))) stop(`There is no file ${file}.`)
const files = named.length > 0 ? named : all.filter((path) => path.endsWith('.test.ts')).sort()
const folder = join(root, 'node_modules', '.cache', `tests-${process.pid}`)
const entries = groups(files).map(writeEntry)
const options = ['--import', 'tsx', '--test', '--test-reporter=spec', '--test-concurrency=2', '--test-timeout=1200000']
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
 * A file that the test runner starts, with the tests of several. The first test waits until all
 * files are loaded.
 */
function writeEntry(files, index) {
  const imports = files.map((file) => `  await import(${JSON.stringify(pathToFileURL(join(root, file)).href)})\n`)
  const entry = join(folder, `${index + 1}.mjs`)
  mkdirSync(folder, { recursive: true })
  const text = `import { before } from 'node:test'\nconst loaded = (async () => {\n${imports.join('')}})()\nbefore(() => loaded)\nawait loaded\n`
  writeFileSync(entry, text)
  return entry
}
