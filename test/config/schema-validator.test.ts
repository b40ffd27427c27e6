import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { ValidateFunction } from 'ajv'
import { parse, parseDocument } from 'yaml'
import { compileSchema } from '../../src/config/document/schema-validator.ts'

const built = new URL('../../dist/config/document/schema-validator.js', import.meta.url)
const cases = new URL('cases/', import.meta.url)

/** The errors, and the document with the defaults that the validator fills in. */
function outcome(validate: ValidateFunction, text: string) {
  const document: unknown = parse(text, { logLevel: 'error' })
  const isValid = validate(document)
  return JSON.parse(JSON.stringify({ isValid, errors: validate.errors, document })) as { readonly errors: unknown }
}

test('The validator that the build generates finds the same errors as the schema', async () => {
  const generated = (await import(built.href)) as { readonly schemaValidator: () => ValidateFunction }
  const [ours, theirs] = [compileSchema().validate, generated.schemaValidator()]
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

test('The build loads no compiler of schemas', () => {
  const text = readFileSync(built, 'utf8')

  const imported = [...text.matchAll(/^import .* from '(.+)'$/gm)].map(([, module]) => module)
  assert.deepEqual(imported, ['ajv/dist/runtime/ucs2length.js'])
})
