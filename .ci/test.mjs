// `npm test [-- FILE …]`: every *.test.ts below test/, or the files named, with Node's own test
// runner.
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ensureBuild, ensurePackages, ensurePrograms, root, stop } from './prepare.mjs'

/**
 * How many files of a folder run in one process. To start a process for each file takes longer than
 * most files do.
 */
const filesPerProcess = 12

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

/** Files of one folder, some at a time; alone those that begin with "// Own process:" and why. */
function groups(files) {
  const isAlone = (file) => readFileSync(join(root, file), 'utf8').startsWith('// Own process:')
  const alone = files.filter(isAlone).map((file) => [file])
  return [...alone, ...ofFolders(files.filter((file) => !isAlone(file)))]
}

function ofFolders(files) {
  const ofFolder = new Map()
  for (const file of files) ofFolder.set(dirname(file), [...(ofFolder.get(dirname(file)) ?? []), file])
  return [...ofFolder.values()].flatMap((files) => {
    const count = Math.ceil(files.length / filesPerProcess)
    const each = Math.ceil(files.length / count)
    return Array.from({ length: count }, (_, index) => files.slice(index * each, (index + 1) * each))
  })
}

/**
 * A file that the test runner starts, with the tests of several. The first test waits until all
 * files are loaded.
 */
function writeEntry(files, index) {
  const imports = files.map((file) => `  await import(${JSON.stringify(pathToFileURL(join(root, file)).href)})\n`)
  const entry = join(folder, `${index + 1}-${dirname(files[0]).replaceAll('/', '-')}.mjs`)
  mkdirSync(folder, { recursive: true })
  const text = `import { before } from 'node:test'\nconst loaded = (async () => {\n${imports.join('')}})()\nbefore(() => loaded)\nawait loaded\n`
  writeFileSync(entry, text)
  return entry
}
