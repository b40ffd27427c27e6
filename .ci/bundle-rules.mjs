// How the program differs from its sources and from its packages, a rule each
// (docs/decisions/0021-one-bundled-program.md). test/bundle-rules.test.ts tests each rule.
import { dirname, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Modules of the sources, and the text of the module that the program has in their place. */
const replaced = new Map([
  // Modules of the program are directly in dist/.
  [
    'src/config/document/schema-text.ts',
    `import { readFileSync } from 'node:fs'
      const file = new URL('../schemas/gateway.schema.json', import.meta.url)
      export const schemaText = () => readFileSync(file, 'utf8')`,
  ],
  // The program contains the texts of pages.
  [
    'packages/admin-page/texts.ts',
    `import uPlotScript from 'uplot/dist/uPlot.iife.min.js' with { type: 'text' }
      import uPlotStyle from 'uplot/dist/uPlot.min.css' with { type: 'text' }
      import script from './script.js' with { type: 'text' }
      import style from './style.css' with { type: 'text' }
      export const texts = { uPlotScript, uPlotStyle, script, style }`,
  ],
  [
    'src/pages/texts.ts',
    `import notice from './notice.js' with { type: 'text' }
      import signInForFrame from './sign-in-for-frame.js' with { type: 'text' }
      import frameSignIn from './frame-sign-in.js' with { type: 'text' }
      export const texts = { notice, signInForFrame, frameSignIn }`,
  ],
])

/** A plugin of esbuild that puts these modules in their places. */
export const replaceModules = {
  name: 'replace-modules',
  setup({ onLoad, onEnd }) {
    const found = new Set()
    onLoad({ filter: /\/(?:src|packages)\/.*\.ts$/ }, ({ path }) => {
      const source = relative(root, path)
      const contents = replaced.get(source)
      if (contents === undefined) return undefined
      found.add(source)
      return { contents, loader: 'js', resolveDir: dirname(path) }
    })
    onEnd(() => {
      for (const source of replaced.keys())
        if (!found.has(source)) throw new Error(`${source} is not in the program: see .ci/bundle-rules.mjs`)
    })
  },
}

/**
 * undici loads HTTP/2 at every start, and uses it only when it is told to. The gRPC server of the
 * gateway loads it by itself.
 */
const http2Modules = /^node:http2$|\/client-h2\.js$/
const packagesWithoutHttp2 = /\/node_modules\/undici\//

/** Puts an empty module in the place of HTTP/2, because it is loaded. */
export const omitHttp2 = {
  name: 'omit-http2',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: http2Modules }, ({ path, importer }) =>
      packagesWithoutHttp2.test(importer) ? { path, namespace: 'empty' } : undefined,
    )
    onLoad({ filter: /.*/, namespace: 'empty' }, () => ({ contents: 'module.exports = {}' }))
  },
}

/** The text of a module of the program, from the text that esbuild wrote. */
export function adapted(text, file) {
  return withoutImportsOfBuiltins(withAsciiComments(text), file)
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

/** As esbuild writes an import. */
const importedBuiltin = /^import (?:([\w$]+)|\{([^{}]+)\}) from "(node:[\w/]+)";$/gm
export const banner = `import { createRequire as __createRequire } from 'node:module'
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
    throw new Error(`${file} imports a module of Node.js in an unknown way: see .ci/bundle-rules.mjs`)
  return [before, [banner, ...builtins].join(' '), after].join('')
}
