import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import written from '../../schemas/gateway.schema.json' with { type: 'json' }
import { settingsThatNeedRestart } from '../../src/server/reloadable.ts'
import { pages } from './markdown.ts'
import { referencePage, type Schema } from './reference.ts'

const schema = written as unknown as Schema
const file = new URL('../../docs/reference.md', import.meta.url)

test('The reference matches the schema (npm run reference generates it)', async () => {
  const page = await referencePage(schema, settingsThatNeedRestart)

  if (process.env['UPDATE'] === '1') writeFileSync(file, page)
  assert.equal(readFileSync(file, 'utf8'), page)
})

/** Where the tables of the page on configuration begin in the schema. */
const tables: Readonly<Record<string, string>> = {
  'Top level': '',
  provider: 'provider',
  session: 'session',
  'The memory store': 'session',
  Redis: 'session.store.redis',
  upstreams: 'upstreams.NAME',
  headers: 'upstreams.NAME.headers.HEADER',
  rules: 'upstreams.NAME.rules[]',
  logout: 'upstreams.NAME',
  tests: 'upstreams.NAME.tests[]',
  pages: 'pages',
  tracing: 'tracing',
  'limits, shutdown, log': '',
}

/**
 * The default that each setting of a page's tables has, by its path; `tableAt` says where a heading
 * is in the schema.
 */
function defaultsIn(text: string, tableAt: (heading: string) => string | undefined): Map<string, string> {
  const found = new Map<string, string>()
  let table: string | undefined
  let column = -1
  for (const line of text.split('\n')) {
    const heading = /^#+ (.*)$/.exec(line)?.[1]
    if (heading !== undefined) table = tableAt(heading)
    const cells = line.split(/(?<!\\)\|/).map((cell) => cell.trim())
    if (cells[1] === 'setting') column = cells.indexOf('default')
    const setting = /^`([\w.]+)`$/.exec(cells[1] ?? '')?.[1]
    if (setting !== undefined && table !== undefined && column > 0)
      found.set(table === '' ? setting : `${table}.${setting}`, cells[column] ?? '')
  }
  return found
}

test('The page on configuration has the same defaults as the schema', async () => {
  const page = pages.find(({ path }) => path === 'docs/configuration.md')
  const defaults = defaultsIn(await referencePage(schema, []), (heading) => (heading === 'Top level' ? '' : heading))

  const said = defaultsIn(page?.text ?? '', (heading) => tables[heading])

  assert.ok(said.size > 60, `only ${said.size} settings were found`)
  const faults = [...said].flatMap(([setting, fallback]) => {
    const meant = defaults.get(setting)
    if (meant === undefined) return [`${setting} is no setting`]
    // What is no value is said in words, such as "off".
    const isInWords =
      !fallback.startsWith('`') && (meant === '—' || meant === '`{}`' || /^(?:admin|ext_authz)\.listen$/.test(setting))
    return isInWords || fallback === meant ? [] : [`${setting}: ${fallback}, but ${meant} by the schema`]
  })
  assert.deepEqual(faults, [])
})
