import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { type Endpoint, endpoints } from '../../src/config/endpoints.ts'

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
/** The first cells of the rows of all tables of a page. */
const rowsOf = (path: string) => [...read(path).matchAll(/^\| (`[^|]*?) *\|/gm)].map(([, cell = '']) => cell)

test('Each audit event of the code is in the schema, and each one is in the documentation', () => {
  const [, members = ''] = /export interface AuditEvents \{\n([^]*?)\n\}/.exec(read('src/observe/audit.ts')) ?? []
  const events = [...members.matchAll(/^ {2}'([a-z_.]+)':/gm)].map(([, name = '']) => name)
  const schema = JSON.parse(read('schemas/audit-event.schema.json')) as {
    readonly oneOf: readonly { readonly $ref: string }[]
    readonly definitions: object
  }
  const alternatives = schema.oneOf.map(({ $ref }) => $ref.replace('#/definitions/', ''))
  const page = read('docs/observability.md')

  assert.ok(events.length > 20)
  assert.deepEqual(alternatives.toSorted(), events.toSorted())
  assert.deepEqual(
    events.filter((name) => !(name in schema.definitions)),
    [],
  )
  assert.deepEqual(
    events.filter((name) => !page.includes(`\`${name}\``)),
    [],
  )
})

test('Each endpoint has a row in docs/endpoints.md, with methods that it serves', () => {
  const rows = rowsOf('docs/endpoints.md').map((cell) => {
    const [last = '', ...methods] = cell.replaceAll('`', '').split(/[ ,]+/).toReversed()
    return { name: last.replace(/\?.*/, ''), methods: methods.toSorted() }
  })

  const all = Object.values<Endpoint>(endpoints)
  for (const { name } of all) {
    const row = rows.find((each) => each.name === name.split('/')[0])
    assert.ok(row, `docs/endpoints.md has no row about ${name}`)
    const methods = all.flatMap((each) => (each.name === name ? each.methods : []))
    assert.deepEqual(
      row.methods.filter((method) => !methods.some((served) => served === method)),
      [],
      name,
    )
  }
})
