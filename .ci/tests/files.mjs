// Which files of tests run, and which of them share a process.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { root, stop } from '../prepare.mjs'

/** How many files run in one process: starting a process takes longer than most files. */
const [fewestFiles, mostFiles] = [3, 40]

/**
 * The files of tests that the arguments name, and how many slow ones were left out. Without
 * arguments, these are all files. A slow file runs if it is named, or if all tests run.
 */
export function chooseFiles(named, isAll) {
  const found = named.length === 0 ? filesIn('test') : named.flatMap((path) => (isFolder(path) ? filesIn(path) : path))
  const isChosen = (file) => isAll || named.includes(file) || reasonOf(file, 'Slow') === undefined
  const files = [...new Set(found)].filter(isChosen)
  return { files, leftOut: new Set(found).size - files.length }
}

function isFolder(path) {
  if (!existsSync(join(root, path))) stop(`There is no file ${path}.`)
  return statSync(join(root, path)).isDirectory()
}

function filesIn(folder) {
  const files = readdirSync(join(root, folder), { recursive: true }).filter((path) => path.endsWith('.test.ts'))
  if (files.length === 0) stop(`There are no tests below ${folder}.`)
  return files.map((path) => relative(root, join(root, folder, path))).sort()
}

/**
 * The reason after `// Slow:` or `// Own process:` in the lines that begin a file; `undefined` if
 * it has no such line.
 */
export function reasonOf(file, mark) {
  const [lines] = /^(?:\/\/ .*\n)*/.exec(readFileSync(join(root, file), 'utf8'))
  return new RegExp(`^// ${mark}: (.+)`, 'm').exec(lines)?.[1]
}

/**
 * Files that run in one process. A file that begins with "// Own process:" and a reason runs alone;
 * folders with many files have processes of their own, small folders share some. Few files are
 * spread over the processes that run at once.
 */
export function groupFiles(files, processes) {
  const isAlone = (file) => reasonOf(file, 'Own process') !== undefined
  const alone = files.filter(isAlone).map((file) => [file])
  const filesOf = new Map()
  for (const file of files)
    if (!isAlone(file)) filesOf.set(dirname(file), [...(filesOf.get(dirname(file)) ?? []), file])
  const folders = [...filesOf.values()]
  const small = folders.filter(({ length }) => length < mostFiles).flat()
  const each = Math.min(mostFiles, Math.max(fewestFiles, Math.ceil(files.length / (2 * processes))))
  const large = folders.filter(({ length }) => length >= mostFiles).flatMap((folder) => parts(folder, each))
  // The last ones first: what waits longest, for Redis and for applications, is there.
  return [...alone, ...parts(small, each).reverse(), ...large]
}

/** Splits a list of files into parts of about the same length. */
function parts(files, most) {
  const count = Math.ceil(files.length / most)
  const each = Math.ceil(files.length / count)
  return Array.from({ length: count }, (_, index) => files.slice(index * each, (index + 1) * each))
}
