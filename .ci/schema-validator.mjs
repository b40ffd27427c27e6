// The schema of the configuration, compiled. The build and the tests put this module in the place
// of src/config/document/schema-validator.ts, which would compile the schema in each process.
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))

/** The compiler of the gateway, and what makes code of its result: both with one copy of Ajv. */
async function loadCompiler() {
  const { outputFiles } = await build({
    stdin: {
      contents: `export { compileSchema } from './src/config/document/schema-compiler.ts'
        export { default as standalone } from 'ajv/dist/standalone/index.js'`,
      resolveDir: root,
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
export const schemaValidatorPlugin = pluginWith(schemaValidatorModule)

/** The same for the program, which has the module in a file of its own. */
export const schemaValidatorApart = pluginWith(() => loadingModule)

const file = 'schema-validator.cjs'

/**
 * The validator is a fifth of the program, and is needed only while a configuration is read. No ES
 * module ever leaves memory, so it is a CommonJS module that nothing keeps.
 */
const loadingModule = `
  import { createRequire } from 'node:module'
  let known
  export function compiledSchema() {
    const last = known?.deref()
    if (last !== undefined) return last
    const load = createRequire(import.meta.url)
    const { compiledSchema } = load('./${file}')
    delete load.cache[load.resolve('./${file}')]
    const compiled = compiledSchema()
    known = new WeakRef(compiled)
    return compiled
  }`

/** Writes the module that {@link schemaValidatorApart} loads, and returns what is in it. */
export async function writeSchemaValidator(folder) {
  const { metafile } = await build({
    absWorkingDir: root,
    stdin: {
      contents: await schemaValidatorModule(),
      resolveDir: root,
      // The name of an ES module decides what a default import is.
      sourcefile: 'schema-validator.mjs',
    },
    outfile: join(folder, file),
    bundle: true,
    format: 'cjs',
    platform: 'node',
    logLevel: 'warning',
    metafile: true,
  })
  return metafile
}

function pluginWith(contentsOf) {
  return {
    name: 'schema-validator',
    setup({ onLoad }) {
      onLoad({ filter: /\/schema-validator\.ts$/ }, async ({ path }) => ({
        contents: await contentsOf(),
        loader: 'js',
        resolveDir: dirname(path),
      }))
    },
  }
}
