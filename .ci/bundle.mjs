// `node .ci/bundle.mjs FOLDER`: the program with the packages that it uses, as modules that load
// only what a command needs (docs/decisions/0021-one-bundled-program.md). Beside them: LICENSES.txt
// with the licenses of the packages, and gatehouse.cdx.json, the bill of materials.
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { adapted, banner, omitHttp2, replaceModules } from './bundle-rules.mjs'
import { billOfMaterials, licenses, packagesIn } from './bundled-packages.mjs'
import { schemaValidatorApart, writeSchemaValidator } from './schema-validator.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))

const outdir = resolve(process.argv[2])
const { metafile } = await build({
  absWorkingDir: root,
  entryPoints: { main: 'src/main.ts', 'demo/demo': 'examples/demo/demo.ts' },
  outdir,
  chunkNames: '[name]-[hash]',
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node22.21',
  // undici leaves out its second, experimental parser where this name is defined.
  define: { esbuildDetection: 'true' },
  // Only the demo needs them, which no installation has.
  external: ['oidc-provider', 'ws'],
  // Packages that are not ES modules load modules of Node.js with `require`.
  banner: { js: banner },
  inject: ['.ci/fetch-classes.mjs'],
  sourcemap: true,
  sourcesContent: false,
  legalComments: 'none',
  logLevel: 'warning',
  metafile: true,
  plugins: [schemaValidatorApart, replaceModules, omitHttp2],
})
for (const path of Object.keys(metafile.outputs).filter((path) => path.endsWith('.js'))) {
  const file = resolve(root, path)
  writeFileSync(file, adapted(readFileSync(file, 'utf8'), path))
}
const { inputs, outputs } = await writeSchemaValidator(outdir)
const packages = packagesIn({
  inputs: { ...metafile.inputs, ...inputs },
  outputs: { ...metafile.outputs, ...outputs },
})
writeFileSync(join(outdir, 'LICENSES.txt'), licenses(packages))
writeFileSync(join(outdir, 'gatehouse.cdx.json'), `${JSON.stringify(billOfMaterials(packages), null, 2)}\n`)
