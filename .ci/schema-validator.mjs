// `node .ci/schema-validator.mjs FOLDER`: compiles the schema of the configuration and replaces the
// module in FOLDER (a built dist) that would compile it in each process.
import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import standalone from 'ajv/dist/standalone/index.js'

const module = resolve(process.argv[2], 'config', 'document', 'schema-validator.js')
const { compileSchema } = await import(pathToFileURL(module).href)
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

const lines = [
  '// Generated from schemas/gateway.schema.json by .ci/schema-validator.mjs.',
  ...imports.map((path, index) => `import helper${index} from '${path}.js'`),
  code,
  'export const schemaValidator = () => validate0',
]
writeFileSync(module, `${lines.join('\n')}\n`)
