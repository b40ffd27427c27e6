import { type CompiledSchema, compileSchema } from './schema-compiler.ts'

let compiled: CompiledSchema | undefined

/**
 * The compiled schema. Compiling it takes a fifth of a second, so the build and the tests replace
 * this module with the compiled function (`.ci/schema-validator.mjs`). A test compares both.
 */
export function compiledSchema(): CompiledSchema {
  return (compiled ??= compileSchema())
}
