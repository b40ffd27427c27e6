// The schema of the configuration, compiled. The build and the tests put this module in the place
// of src/config/document/schema-validator.ts, which would compile the schema in each process.
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

/** The compiler of the gateway, and what makes code of its result: both with one copy of Ajv. */
async function loadCompiler() {
  const { outputFiles } = await build({
    stdin: {
      contents: `export { compileSchema } from './src/config/document/schema-compiler.ts'
        export { default as standalone } from 'ajv/dist/standalone/index.js'`,
      resolveDir: fileURLToPath(new URL('..', import.meta.url)),
    },
    bundle: true,
    format: 'esm',
    platform: 'node',
    // schema-text.ts reads the schema from a path relative to its own.
    define: { 'import.meta.url': JSON.stringify(new URL('../src/config/document/', import.meta.url)) },
    logLevel: 'warning',
    write: false,
  })
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString('base64')}`)
}

/** The source of the module. */
async function schemaValidatorModule() {
  const { compileSchema, standalone } = await loadCompiler()
  const { ajv, validate } = compileSchema({ source: true, esm: true, optimize: true })
  // Ajv writes `require`, which an ES module does not have (ajv-validator/ajv#2209).
  const helper = /require\("(ajv\/dist\/runtime\/\w+)"\)\.default/g
  const imports = []
  const code = standalone
    .default(ajv, validate)
    .replace(helper, (_, path) => `helper${imports.push(path) - 1}.default`)
    .replace('export const validate = validate0;export default validate0;', '')
  if (/\brequire\(|\bexport\b/.test(code.replace(/"(?:[^"\\]|\\.)*"/g, '')))
    throw new Error('Ajv generated unexpected code.')
  return [
    '// Generated from schemas/gateway.schema.json by .ci/schema-validator.mjs.',
    ...imports.map((path, index) => `import helper${index} from '${path}.js'`),
    code,
    'export const compiledSchema = () => ({ schema: schema0, validate: validate0 })\n',
  ].join('\n')
}

/** A plugin of esbuild that puts the module in its place. */
export const schemaValidatorPlugin = {
  name: 'schema-validator',
  setup({ onLoad }) {
    onLoad({ filter: /\/schema-validator\.ts$/ }, async ({ path }) => ({
      contents: await schemaValidatorModule(),
      loader: 'js',
      resolveDir: dirname(path),
    }))
  },
}
