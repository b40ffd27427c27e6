import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { schemaText } from '../../src/config/document/schema.ts'
import { folderWith } from '../support/command-line.ts'
import { openInEditor, type Position } from '../support/language-server.ts'

const header = '# yaml-language-server: $schema=gateway.schema.json\n'

const good = `${header}version: 1
external_url: https://orders.example.com
provider:
  issuer: https://id.example.com
  client_id: orders
  client_secret: { env: CLIENT_SECRET }
upstreams:
  orders:
    url: http://127.0.0.1:3000
    rules:
      - { path: /static/*, access: public }
`

/** Opens a text beside the schema as `gatehouse schema` prints it. */
function open(t: TestContext, text: string) {
  const folder = folderWith(t, { 'gateway.yaml': text, 'gateway.schema.json': schemaText() })
  return openInEditor(t, join(folder, 'gateway.yaml'), text)
}

/** Where a part of a text ends. */
function after(text: string, part: string): Position {
  const lines = text.slice(0, text.indexOf(part) + part.length).split('\n')
  return { line: lines.length - 1, character: lines.at(-1)?.length ?? 0 }
}

test('an editor underlines nothing in a good file', async (t) => {
  const document = await open(t, good)

  assert.deepEqual(await document.diagnostics(), [])
})

test('an editor underlines a setting that there is not, and a value that is not possible, in our words', async (t) => {
  const document = await open(
    t,
    good
      .replace('rules:', 'rulse:')
      .replace('{ env: CLIENT_SECRET }', 'in the file')
      .replace('version: 1', 'version: 2'),
  )

  const told = await document.diagnostics()

  const line = (of: string) => told.find(({ message }) => message.includes(of))?.range.start.line
  assert.equal(line('rulse'), 10, JSON.stringify(told))
  assert.equal(line('must be the number 1'), 1, JSON.stringify(told))
  assert.equal(line('a secret is never written in the file itself'), 6, JSON.stringify(told))
})

test('an editor offers the settings that may stand at a place', async (t) => {
  const text = good.replace('    rules:', '    \n    rules:')
  const document = await open(t, text)

  const upstream = await document.completion(after(text, '127.0.0.1:3000\n    '))
  for (const setting of ['headers', 'hosts', 'logout', 'response_timeout'])
    assert.ok(upstream.includes(setting), setting)
  assert.ok(!upstream.includes('issuer'), 'a setting of the provider is offered for an upstream')
})

test('an editor offers the values that are possible', async (t) => {
  const document = await open(t, good)

  const offered = await document.completion(after(good, 'access: '))

  assert.deepEqual([...offered].sort(), ['optional', 'public', 'signed_in'])
})

test('an editor says what a setting is for', async (t) => {
  const document = await open(t, good)

  assert.match(await document.hover(after(good, 'external_u')), /browsers reach/i)
})

test('without the first line an editor knows nothing of the schema', async (t) => {
  const document = await open(t, good.replace(header, '').replace('rules:', 'rulse:'))

  assert.deepEqual(await document.diagnostics(), [])
})
