import { Ajv, type AnySchemaObject, type CodeOptions, type ValidateFunction } from 'ajv'
import { schemaText } from './schema-text.ts'

/**
 * The function that validates a document against the schema. Compiling it takes a fifth of a
 * second, so the build replaces this module with the compiled function
 * (`.ci/schema-validator.mjs`). The tests run both.
 */
export function schemaValidator(): ValidateFunction {
  return compileSchema().validate
}

/** For the build, which also needs the generated code. */
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
