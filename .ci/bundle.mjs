// `node .ci/bundle.mjs FOLDER`: the program with the packages that it uses, as modules that load
// only what a command needs (docs/decisions/0021-one-bundled-program.md). Beside them: LICENSES.txt
// with the licenses of the packages, and gatehouse.cdx.json, the bill of materials.
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
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
    'src/wire/undici.ts',
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

/**
 * Fastify and undici load HTTP/2 at every start, and use it only when they are told to. The gRPC
 * server of the gateway loads it by itself.
 */
const http2Modules = /^node:http2$|\/client-h2\.js$/
const packagesWithoutHttp2 = /\/node_modules\/(?:fastify|undici)\//

/**
 * Puts a module that throws an error in the place of each omitted package, and an empty one in that
 * of HTTP/2, because it is loaded.
 */
const omit = {
  name: 'omit',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: http2Modules }, ({ path, importer }) =>
      packagesWithoutHttp2.test(importer) ? { path, namespace: 'empty' } : undefined,
    )
    onLoad({ filter: /.*/, namespace: 'empty' }, () => ({ contents: 'module.exports = {}' }))
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

const importedBuiltin = /^import (?:([\w$]+)|\{([^{}]+)\}) from "(node:[\w/]+)";$/gm
const banner = `import { createRequire as __createRequire } from 'node:module'
const require = __createRequire(import.meta.url);`

/**
 * Replaces imports of Node's modules by `require`. For an import, Node.js reads every export, and
 * reading `WebSocket` of `node:http` loads the HTTP client of Node.js. Line numbers stay the same,
 * because source maps need them.
 */
function withoutImportsOfBuiltins(text, file) {
  const builtins = []
  const rest = text.replace(importedBuiltin, (statement, whole, names, id) => {
    const target = whole ?? `{${names.replaceAll(/\s+/g, ' ').replaceAll(' as ', ': ')}}`
    builtins.push(`const ${target} = require("${id}");`)
    return statement.replaceAll(/[^\n]/g, '')
  })
  const [before, after] = rest.split(banner)
  if (after === undefined || /\bfrom "node:|^import "node:/m.test(after))
    throw new Error(`${file} imports a module of Node.js in an unknown way: see .ci/bundle.mjs`)
  return [before, [banner, ...builtins].join(' '), after].join('')
}

/** Puts the texts of uPlot in the place of the module that reads them. */
const embedUPlot = {
  name: 'embed-uplot',
  setup({ onLoad }) {
    onLoad({ filter: /\/admin\/page\/uplot\.ts$/ }, ({ path }) => ({
      contents: `export { default as uPlotScript } from 'uplot/dist/uPlot.iife.min.js'
        export { default as uPlotStyle } from 'uplot/dist/uPlot.min.css'`,
      resolveDir: dirname(path),
    }))
  },
}

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
  target: 'node20.19',
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
  loader: { '.iife.min.js': 'text', '.min.css': 'text' },
  plugins: [schemaValidatorPlugin, embedUPlot, adapt, omit],
})
for (const path of Object.keys(metafile.outputs).filter((path) => path.endsWith('.js'))) {
  const file = resolve(root, path)
  writeFileSync(file, withoutImportsOfBuiltins(withAsciiComments(readFileSync(file, 'utf8')), path))
}
for (const file of changes.keys())
  if (!changed.has(file)) throw new Error(`${file} is not in the program: see .ci/bundle.mjs`)
const packages = packagesIn(metafile)
writeFileSync(join(outdir, 'LICENSES.txt'), licenses(packages))
writeFileSync(join(outdir, 'gatehouse.cdx.json'), `${JSON.stringify(billOfMaterials(packages), null, 2)}\n`)
