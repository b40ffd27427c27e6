import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { Ajv } from 'ajv'
import { ownKeywords } from '../../src/config/document/schema-compiler.ts'
import { resolved } from '../../src/config/document/schema-part.ts'
import { languages } from '../../src/config/model/pages.ts'
import { signingAlgorithms } from '../../src/config/model/provider.ts'
import { amountOf } from '../../src/config/quantities.ts'

type Part = Readonly<Record<string, unknown>>

const schema = JSON.parse(
  readFileSync(new URL('../../schemas/gateway.schema.json', import.meta.url), 'utf8'),
) as Part & { readonly definitions: Readonly<Record<string, Part>> }

interface Found {
  readonly path: string
  readonly part: Part
}

/** Every part of the schema that is a schema itself, with the place where it stands. */
function* parts(part: Part = schema, path = ''): Generator<Found> {
  yield { path, part }
  for (const [keyword, value] of Object.entries(part)) {
    const at = `${path}/${keyword}`
    if (keyword === 'properties' || keyword === 'definitions')
      for (const [name, member] of Object.entries(value as Part)) yield* parts(member as Part, `${at}/${name}`)
    else if (['oneOf', 'anyOf', 'allOf'].includes(keyword))
      for (const [index, member] of (value as Part[]).entries()) yield* parts(member, `${at}/${index}`)
    else if (['items', 'additionalProperties', 'propertyNames', 'if', 'then', 'contains'].includes(keyword))
      if (typeof value === 'object') yield* parts(value as Part, at)
  }
}

function isSetting({ path }: Found): boolean {
  return /\/properties\/[^/]+$/.test(path)
}

function isMapOfSettings(part: Part): boolean {
  return typeof part['properties'] === 'object'
}

test('The schema has a title, and every setting has a description', () => {
  assert.equal(typeof schema['$id'], 'string')
  assert.equal(typeof schema['title'], 'string')
  const mute = [...parts()].filter((found) => isSetting(found) && typeof found.part['description'] !== 'string')
  assert.deepEqual(
    mute.map(({ path }) => path),
    [],
  )
})

test('A map of settings rejects unknown settings', () => {
  const open = [...parts()].filter(({ part }) => isMapOfSettings(part) && part['additionalProperties'] !== false)

  assert.deepEqual(
    open.map(({ path }) => path),
    [],
  )
})

test('Every pattern in the schema has its own message', () => {
  const mute = [...parts()].filter(({ part }) => 'pattern' in part && typeof part['errorMessage'] !== 'string')

  assert.deepEqual(
    mute.map(({ path }) => path),
    [],
  )
})

test('Every default and example matches the schema', () => {
  const ajv = new Ajv({ allowUnionTypes: true, strictTypes: false, useDefaults: false, validateFormats: false })
  ajv.addVocabulary(ownKeywords)
  ajv.addSchema(schema, 'gateway')
  const wrong = [...parts()].flatMap(({ path, part }) => {
    const { default: fallback, examples = [] } = part
    const values = [...(fallback === undefined ? [] : [fallback]), ...(examples as unknown[])]
    if (values.length === 0) return []
    // The parts that several others refer to are compiled once.
    const validate = ajv.getSchema(`gateway#${encodeURI(path)}`) ?? assert.fail(path)
    return values.filter((value) => !validate(value)).map((value) => `${path}: ${JSON.stringify(value)}`)
  })

  assert.deepEqual(wrong, [])
})

test('The schema and the model list the same algorithms', () => {
  const properties = schema.definitions['provider']?.['properties'] as Record<string, Part>

  assert.deepEqual(properties['id_token_signed_response_alg']?.['enum'], signingAlgorithms)
})

test('The schema and the model list the same languages', () => {
  const properties = schema.definitions['pages']?.['properties'] as Record<string, Part>

  assert.deepEqual(properties['language']?.['enum'], languages)
})

test('Every duration and size has a range, which contains its default', () => {
  const used = [...parts()].filter(({ part }) => /\/(?:duration|size)$/.test(String(part['$ref'])))
  assert.ok(used.length > 20)

  for (const { path, part } of used) {
    const { atLeast = '', atMost = '', default: fallback = atLeast } = resolved(part, schema)
    const amounts = [atLeast, String(fallback), atMost].map(amountOf)
    assert.deepEqual(
      amounts,
      amounts.toSorted((a, b) => a - b),
      path,
    )
  }
})

const nasty = ['a', 'a-', '-', '/', '/a', '/.', 'A', '_', '1', 'ms', ' ', '%', '\n', 'é', '__', ':', '.']

for (const { path, part } of parts()) {
  if (typeof part['pattern'] !== 'string') continue
  const pattern = new RegExp(part['pattern'], 'u')
  test(`The pattern of ${path} takes linear time for any text`, () => {
    for (const piece of nasty) {
      const text = `${piece.repeat(50_000 / piece.length)}!\n`
      // The fastest of several: other work on the machine is not the pattern's fault.
      const times = [1, 2, 3, 4, 5].map(() => {
        const begin = performance.now()
        pattern.test(text)
        return performance.now() - begin
      })
      assert.ok(Math.min(...times) < 50, `${JSON.stringify(piece)} takes too long`)
    }
  })
}

const relationKeywords = ['notWith', 'onlyWith', 'neededWith'] as const

/** The conditions of the relations. */
const conditions = [...parts()].flatMap(({ path, part }) =>
  relationKeywords.flatMap((keyword) =>
    Object.entries((part[keyword] ?? {}) as Record<string, unknown>).flatMap(([text, reason]) =>
      text.split(/ or | and /).map((condition) => ({ path, condition, reason })),
    ),
  ),
)

/** The place of the map that contains a setting, or a map. */
function mapAround(path: string): string {
  const $ref = path.replace(/^\/definitions\/(?=[^/]+$)/, '#/definitions/')
  const place = [...parts()].find(({ part }) => part['$ref'] === $ref)?.path ?? path
  return place.replace(/\/items$/, '').replace(/\/(?:properties\/[^/]+|additionalProperties)$/, '')
}

test('Each condition of a relation names a setting of its maps, and a value that it can have', () => {
  assert.ok(conditions.length > 100)
  const found = new Map([...parts()].map(({ path, part }) => [path, resolved(part, schema) as Part]))
  for (const { path, condition } of conditions) {
    const [, up = '', name = '', pattern] = /^(\^*)([^:]+)(?:: (.*))?$/.exec(condition) ?? []
    let part = found.get(Array.from(up).reduce(mapAround, mapAround(path)))
    for (const each of name.split('.')) {
      const member = (part?.['properties'] as Record<string, Part> | undefined)?.[each]
      part = resolved(member ?? assert.fail(`${path}: ${condition}`), schema) as Part
    }
    const { type, enum: values = type === 'boolean' ? [true, false] : undefined } = part ?? {}
    if (pattern === undefined || pattern === 'absent' || values === undefined) continue
    assert.ok(
      (values as unknown[]).some((value) => new RegExp(`^(?:${pattern})$`).test(String(value))),
      `${path}: ${condition}`,
    )
  }
})

test('Each reason of a relation is written, and used', () => {
  const used = new Set(conditions.flatMap(({ reason }) => (typeof reason === 'string' ? [reason] : [])))

  assert.deepEqual([...used].toSorted(), Object.keys(schema['reasons'] as object).toSorted())
})
