import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { ValidateFunction } from 'ajv'
import { parse, parseDocument } from 'yaml'
import { compileSchema } from '../../src/config/document/schema-compiler.ts'
import { compiledSchema } from '../../src/config/document/schema-validator.ts'
import { bundledModules } from '../support/bundle.ts'
import { root } from '../support/command.ts'

const cases = new URL('cases/', import.meta.url)

/** What the validator finds in a document. */
function outcome(validate: ValidateFunction, text: string) {
  const document: unknown = parse(text, { logLevel: 'error' })
  const isValid = validate(document)
  return JSON.parse(JSON.stringify({ isValid, errors: validate.errors })) as { readonly errors: unknown }
}

test('The validator that the build generates finds the same errors as the schema', () => {
  // The tests have the generated module in the place of the other.
  assert.match(String(compiledSchema), /validate: validate0 \}\)$/)
  const [ours, theirs] = [compileSchema().validate, compiledSchema().validate]
  let invalid = 0

  // The schema never sees the files whose YAML is invalid, among them those with aliases.
  const files = readdirSync(cases).filter((name) => name.endsWith('.yaml') && !name.startsWith('alias'))
  for (const file of files) {
    const text = readFileSync(new URL(file, cases), 'utf8')
    if (parseDocument(text, { logLevel: 'error' }).errors.length > 0) continue
    const expected = outcome(ours, text)
    assert.deepEqual(outcome(theirs, text), expected, file)
    if (expected.errors !== null) invalid += 1
  }
  assert.ok(invalid > 50, `${invalid} invalid files`)
})

test('The program contains no compiler of schemas for the configuration', () => {
  const compiles = 'ajv.compile(schema)'
  assert.ok(readFileSync(join(root, 'src/config/document/schema-compiler.ts'), 'utf8').includes(compiles))
  assert.ok(bundledModules().every(({ text }) => !text.includes(compiles)))
})
