import { Ajv, type AnySchemaObject, type CodeOptions, type ValidateFunction } from 'ajv'
import { schemaText } from './schema-text.ts'

/** Compiles the schema of the configuration. The build also needs the generated code. */
export function compileSchema(code: CodeOptions = {}): { readonly ajv: Ajv; readonly validate: ValidateFunction } {
  // These options make compiling three times faster. A test compiles the schema with full checks.
  const quickly = { inlineRefs: false, validateSchema: false, meta: false, strict: false }
  const ajv = new Ajv({
    ...quickly,
    code: { optimize: false, ...code },
    allErrors: true,
    verbose: true,
    useDefaults: true,
  })
  // YAML and JSON language servers show `errorMessage` too.
  ajv.addVocabulary(['errorMessage'])
  return { ajv, validate: ajv.compile(JSON.parse(schemaText()) as AnySchemaObject) }
}
