// `node .ci/bundle.mjs FOLDER`: the program with the packages that it uses, as modules that load
// only what a command needs (docs/decisions/0021-one-bundled-program.md). Beside them: LICENSES.txt
// with the licenses of the packages, and gatehouse.cdx.json, the bill of materials.
import { readFileSync, writeFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { billOfMaterials, licenses, packagesIn } from './bundled-packages.mjs'
import { schemaValidatorPlugin } from './schema-validator.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))

/** How sources differ in the bundle: file → text and its replacement. */
const changes = new Map([
  // The bundle has the files that `require` names.
  [
    'src/core/undici.ts',
    [
      ["import { createRequire } from 'node:module'\n", '\n'],
      ['const require = createRequire(import.meta.url)\n', '\n'],
    ],
  ],
  // Modules of the bundle are directly in dist/.
  ['src/config/document/schema-text.ts', [["'../../../schemas/", "'../schemas/"]]],
])

const changed = new Set()

/** Gives the bundle the sources with their changes. */
const adapt = {
  name: 'adapt',
  setup({ onLoad }) {
    onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path }) => {
      const replacements = changes.get(relative(root, path))
      if (replacements === undefined) return undefined
      changed.add(relative(root, path))
      let contents = readFileSync(path, 'utf8')
      for (const [text, replacement] of replacements) {
        if (!contents.includes(text)) throw new Error(`${path} has no ${JSON.stringify(text)}: see .ci/bundle.mjs`)
        contents = contents.replace(text, replacement)
      }
      return { contents, loader: 'ts' }
    })
  },
}

/**
 * Parts of fastify that the gateway has no use for, because its endpoints have no JSON schemas and
 * `inject` is for tests. Node.js would read them at every start.
 */
const omitted = /^(?:@fastify\/ajv-compiler|@fastify\/fast-json-stringify-compiler|light-my-request)$/

/** Puts a module that throws an error in the place of the omitted packages. */
const omit = {
  name: 'omit',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: omitted }, ({ path }) => ({ path, namespace: 'omitted' }))
    onLoad({ filter: /.*/, namespace: 'omitted' }, ({ path }) => ({
      contents: `throw new Error(${JSON.stringify(`${path} is not part of the program.`)})`,
    }))
  },
}

/**
 * V8 keeps the text of a module, with two bytes for each character if one of them is not ASCII.
 * esbuild escapes such characters in code, but not in comments.
 */
function withAsciiComments(text) {
  return text.replace(/^ *(?:\/[/*]|\*).*$/gm, (comment) =>
    comment.replaceAll('§', 'section ').replace(/[^\p{ASCII}]/gu, '?'),
  )
}

const outdir = resolve(process.argv[2])
const { metafile } = await build({
  absWorkingDir: root,
  entryPoints: { main: 'src/main.ts', 'demo/demo': 'src/demo/demo.ts' },
  outdir,
  chunkNames: '[name]-[hash]',
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  // Only the demo needs them, which no installation has.
  external: ['oidc-provider', 'ws'],
  // Packages that are not ES modules load modules of Node.js with `require`.
  banner: {
    js: "import { createRequire as __createRequire } from 'node:module'\nconst require = __createRequire(import.meta.url)",
  },
  sourcemap: true,
  sourcesContent: false,
  legalComments: 'none',
  logLevel: 'warning',
  metafile: true,
  plugins: [schemaValidatorPlugin, adapt, omit],
})
for (const path of Object.keys(metafile.outputs).filter((path) => path.endsWith('.js'))) {
  const file = resolve(root, path)
  writeFileSync(file, withAsciiComments(readFileSync(file, 'utf8')))
}
for (const file of changes.keys())
  if (!changed.has(file)) throw new Error(`${file} is not in the program: see .ci/bundle.mjs`)
const packages = packagesIn(metafile)
writeFileSync(join(outdir, 'LICENSES.txt'), licenses(packages))
writeFileSync(join(outdir, 'gatehouse.cdx.json'), `${JSON.stringify(billOfMaterials(packages), null, 2)}\n`)
