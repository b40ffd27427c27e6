// Each rule by which the program differs from its sources (.ci/bundle-rules.mjs).
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { build, type Plugin } from 'esbuild'
import { adapted, banner, omitHttp2, replaceModules } from '../.ci/bundle-rules.mjs'
import { root } from './support/command.ts'

/** The text of the module that a build makes of `contents`, with one plugin. */
async function bundled(contents: string, plugin: Plugin, external: readonly string[] = []): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: root },
    bundle: true,
    platform: 'node',
    format: 'esm',
    write: false,
    logLevel: 'silent',
    external: [...external],
    plugins: [plugin],
  })
  return outputFiles[0]?.text ?? ''
}

test('the program contains the texts of pages, and reads the schema from a path relative to dist/', async () => {
  const text = await bundled(
    "export * from './packages/admin-page/texts.ts'; export * as pages from './src/pages/texts.ts'; export * from './src/config/document/schema-text.ts'",
    replaceModules,
  )

  assert.match(text, /https:\/\/github\.com\/leeoniya\/uPlot/)
  assert.match(text, /new EventSource\(/)
  assert.match(text, /form\.search \{/)
  assert.match(text, /new BroadcastChannel\(/)
  assert.match(text, /new URL\("\.\.\/schemas\/gateway\.schema\.json"/)
  assert.doesNotMatch(text, /createRequire/)
})

test('a build fails when the program has no module that a rule replaces', async () => {
  const isRefused = /packages\/admin-page\/texts\.ts is not in the program/

  await assert.rejects(bundled("export * from './src/config/document/schema-text.ts'", replaceModules), isRefused)
})

test('HTTP/2 of undici is empty', async () => {
  const text = await bundled("export { default } from 'undici/lib/dispatcher/client.js'", omitHttp2)

  assert.match(text, /client\.js/)
  assert.doesNotMatch(text, /require\("(?:node:)?http2"\)/)
})

test('modules of the sources still load HTTP/2', async () => {
  assert.match(await bundled("export { createServer } from 'node:http2'", omitHttp2), /from "node:http2"/)
})

const head = `${banner}\n`

test('comments of the program are ASCII, and its code stays as it is', () => {
  const text = adapted(`${head}// RFC 9110 §5.1 – “quoted” 日\nconst a = "\\u65E5"; // §\n`, 'a.js')

  assert.equal(text, `${head}// RFC 9110 section 5.1 ? ?quoted? ?\nconst a = "\\u65E5"; // §\n`)
})

test('modules of Node.js are loaded by require, and each line keeps its number', () => {
  const imports = 'import fs from "node:fs";\nimport { a,\n  b as c } from "node:http";\n'

  const text = adapted(`${head}${imports}fs.x(a, c);\n`, 'a.js')

  assert.equal(
    text,
    `${banner} const fs = require("node:fs"); const { a, b: c } = require("node:http");\n\n\n\nfs.x(a, c);\n`,
  )
})

for (const statement of ['import "node:fs";', 'import * as fs from "node:fs";', 'export { a } from "node:fs";'])
  test(`a build fails at an import of another form: ${statement}`, () => {
    assert.throws(
      () => adapted(`${head}${statement}\n`, 'a.js'),
      /a\.js imports a module of Node\.js in an unknown way/,
    )
  })

test('a build fails at a module without the banner', () => {
  assert.throws(() => adapted('const a = 1\n', 'a.js'), /a\.js imports/)
})
