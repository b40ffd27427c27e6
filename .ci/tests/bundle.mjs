// esbuild bundles the tests of each process, because a process that transforms and loads each
// module separately needs twice the processor time to start.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { root, stop } from '../prepare.mjs'
import { schemaValidatorPlugin } from '../schema-validator.mjs'

const costs = fileURLToPath(new URL('costs.mjs', import.meta.url))

/**
 * Builds a module for each group, with its tests. What groups share is in further modules of the
 * folder. Resolves to the paths of the modules that the test runner starts.
 */
export async function bundleTests(groups, folder) {
  mkdirSync(folder, { recursive: true })
  await build({
    absWorkingDir: root,
    entryPoints: groups.map((files, index) => writeEntry(files, join(folder, String(index + 1)))),
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
function writeEntry(files, path) {
  writeFileSync(`${path}-files.ts`, files.map((file) => `import ${JSON.stringify(join(root, file))}\n`).join(''))
  writeFileSync(
    `${path}.ts`,
    `import { before } from 'node:test'
import { measureCosts, programsAreUp } from ${JSON.stringify(costs)}
measureCosts(${JSON.stringify(`${path}.costs`)})
const loaded = import('./${path.split('/').at(-1)}-files.ts')
before(() => loaded.then(programsAreUp))
await loaded
`,
  )
  return `${path}.ts`
}
