import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { ValidateFunction } from 'ajv'
import { parse, parseDocument } from 'yaml'
import { compileSchema } from '../../src/config/document/schema-compiler.ts'
import { compiledSchema } from '../../src/config/document/schema-validator.ts'
import { bundledModules } from '../support/bundle.ts'
import { gatehouse, root, startCommand } from '../support/command.ts'
import { prepareGateway } from '../support/gateway-process.ts'
import { until } from '../support/until.ts'

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

test('The validator leaves the memory of the gateway when its configuration was read', async (t) => {
  const found = bundledModules().filter(({ text }) => text.includes('function validate0('))
  assert.deepEqual(
    found.map(({ name }) => name),
    ['schema-validator.cjs'],
  )
  const { file, folder, env } = await prepareGateway(t)
  const [onSignal, snapshot] = [join(folder, 'on-signal.mjs'), join(folder, 'heap.json')]
  writeFileSync(
    onSignal,
    `import { writeHeapSnapshot } from 'node:v8'
    process.on('SIGUSR2', () => { gc(); process.stderr.write(writeHeapSnapshot(${JSON.stringify(snapshot)})) })`,
  )
  const [node, program] = gatehouse
  const running = startCommand(t, ['run', '--config', file], {
    program: [node, '--expose-gc', '--import', onSignal, program],
    env,
  })
  await running.said('gatehouse is ready')
  running.child.kill('SIGUSR2')
  await until('the snapshot is written', () => running.err().includes(snapshot))
  const heap = readFileSync(snapshot, 'utf8')
  assert.ok(heap.includes('"compiledSchema"'))
  assert.ok(!heap.includes('"validate0"'))
})
