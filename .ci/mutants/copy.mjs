// A copy of this clone in which the sources have mutants. All mutants are in one build, and the
// environment says which one is active, also in the gateways that tests start.
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root, stop } from '../prepare.mjs'
import { withMutants } from './mutate.mjs'

const notCopied = /^(?:node_modules|\.git|site|dist(?:\..*)?)$/

/** `MUTANTS_REACHED` names a file for the numbers of the mutants that a process comes by. */
const switchText = `import { appendFileSync } from 'node:fs'
const { MUTANT, MUTANTS_REACHED: file } = process.env
const active = Number(MUTANT)
const reached = new Set<number>()
export function isMutant(number: number): boolean {
  if (file !== undefined && !reached.has(number)) appendFileSync(file, reached.add(number) && number + '\\n')
  return number === active
}
`

/**
 * Makes the copy, and builds its gateway. The result bundles tests of the copy, a module for each
 * file.
 */
export async function mutatedCopy(copy, mutants) {
  for (const name of readdirSync(root))
    if (!notCopied.test(name)) cpSync(join(root, name), join(copy, name), { recursive: true, preserveTimestamps: true })
  // Links to the files: the bundlers would find the packages of a linked folder in another place.
  spawnSync('cp', ['-al', join(root, 'node_modules'), copy])
  const module = join(copy, 'src', 'mutant.ts')
  writeFileSync(module, switchText)
  for (const [file, own] of Map.groupBy(mutants, ({ file }) => file)) {
    const text = await withMutants(readFileSync(join(root, file), 'utf8'), own)
    writeFileSync(join(copy, file), `import { isMutant } from ${JSON.stringify(module)};${text}`)
  }
  const build = spawnSync(process.execPath, [join(copy, '.ci', 'bundle.mjs'), join(copy, 'dist')], {
    stdio: ['ignore', 2, 2],
  })
  if (build.status !== 0) stop('The gateway with the mutants cannot be built: see above.')
  writeFileSync(join(copy, 'dist', '.built'), '')
  // Those of the copy, which read its files.
  const { chooseFiles } = await import(join(copy, '.ci', 'tests', 'files.mjs'))
  const { bundleTests } = await import(join(copy, '.ci', 'tests', 'bundle.mjs'))
  let bundles = 0
  return {
    root: copy,
    /** The modules of these files and folders, with the slow ones of a folder if `isAll`. */
    async bundle(paths, isAll) {
      bundles += 1
      const { files } = chooseFiles(paths, isAll)
      const entries = await bundleTests(
        files.map((file) => [file]),
        join(copy, `tests-${bundles}`),
      )
      return files.map((file, index) => ({ file, entry: entries[index] }))
    },
    /** An empty folder for temporary files, which the processes that ended could not remove. */
    temporary() {
      const folder = join(copy, '..', 't')
      rmSync(folder, { recursive: true, force: true })
      mkdirSync(folder)
      return folder
    },
  }
}
