import type { ValidateFunction } from 'ajv'
import { compileSchema } from './schema-compiler.ts'

/**
 * The function that validates a document against the schema. Compiling it takes a fifth of a
 * second, so the build and the tests replace this module with the compiled function
 * (`.ci/schema-validator.mjs`). A test compares both.
 */
export function schemaValidator(): ValidateFunction {
  return compileSchema().validate
}
