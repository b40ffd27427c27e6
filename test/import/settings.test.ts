import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

// A new setting may be what another program has. So packages/import names each setting, or the
// schema says `onlyHere`: no program that import reads has it, or an operator has to choose it.

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly $ref?: string
  readonly onlyHere?: boolean
}

const schema = JSON.parse(readFileSync('schemas/gateway.schema.json', 'utf8')) as Schema & {
  readonly definitions: Readonly<Record<string, Schema>>
}
const { definitions } = schema

function resolved(part: Schema | undefined): Schema {
  return part?.$ref === undefined ? (part ?? {}) : (definitions[part.$ref.replace('#/definitions/', '')] ?? {})
}

function at(...path: readonly string[]): Schema {
  return path.reduce((part: Schema, name) => resolved(part.properties?.[name]), schema)
}

const files = readdirSync('packages/import', { recursive: true, encoding: 'utf8' }).filter((name) =>
  name.endsWith('.ts'),
)
const source = files.map((name) => readFileSync(join('packages/import', name), 'utf8')).join('\n')

const sections: Readonly<Record<string, Schema | undefined>> = {
  'the top level': schema,
  listen: at('listen'),
  provider: definitions['provider'],
  session: at('session'),
  redis: definitions['redis'],
  upstream: definitions['upstream'],
  response_headers: resolved(definitions['upstream']?.properties?.['response_headers']),
  rule: definitions['rule'],
  respond: resolved(definitions['rule']?.properties?.['respond']),
  header: definitions['header'],
}

for (const [name, section] of Object.entries(sections))
  test(`Import knows each setting of ${name}, or the schema says that no other program has it`, () => {
    const settings = Object.entries(section?.properties ?? {})
    assert.ok(settings.length > 1, 'the section has settings')
    for (const [setting, { onlyHere = false }] of settings)
      assert.equal(!new RegExp(`\\b${setting}\\b`).test(source), onlyHere, setting)
  })

test('Each setting that a note names exists', () => {
  const named = new Set(
    source.match(/\b(?:provider|session|pages|admin|listen|limits)(?:\.[a-z]+)*\.[a-z]+_[a-z_]+\b/g),
  )
  assert.ok(named.size > 10)
  const exists = (path: readonly string[]) => {
    let part: Schema = schema
    for (const name of path) {
      const next =
        part.properties?.[name] ?? (part === at('provider') ? definitions['provider']?.properties?.[name] : undefined)
      if (next === undefined) return false
      part = resolved(next)
    }
    return true
  }
  assert.deepEqual(
    [...named].filter((path) => !exists(path.split('.'))),
    [],
  )
})
