// Slow: 2 s, the language server of editors is a process of its own
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { schemaText } from '../../src/config/document/schema-text.ts'
import { folderWith } from '../support/command-line.ts'
import { openInEditor, type Position } from '../support/language-server.ts'

const header = '# yaml-language-server: $schema=gateway.schema.json\n'

const valid = `${header}version: 1
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

/** Opens a text in a folder with the schema that `gatehouse schema` prints. */
function open(t: TestContext, text: string) {
  const folder = folderWith(t, { 'gateway.yaml': text, 'gateway.schema.json': schemaText() })
  return openInEditor(t, join(folder, 'gateway.yaml'), text)
}

/** The position at the end of a part of a text. */
function after(text: string, part: string): Position {
  const lines = text.slice(0, text.indexOf(part) + part.length).split('\n')
  return { line: lines.length - 1, character: lines.at(-1)?.length ?? 0 }
}

test('An editor underlines nothing in a valid file', async (t) => {
  const document = await open(t, valid)

  assert.deepEqual(await document.diagnostics(), [])
})

test('An editor underlines an unknown setting and an invalid value, with the messages of the schema', async (t) => {
  const document = await open(
    t,
    valid
      .replace('rules:', 'rulse:')
      .replace('{ env: CLIENT_SECRET }', 'in the file')
      .replace('version: 1', 'version: 2'),
  )

  const diagnostics = await document.diagnostics()

  const line = (of: string) => diagnostics.find(({ message }) => message.includes(of))?.range.start.line
  assert.equal(line('rulse'), 10, JSON.stringify(diagnostics))
  assert.equal(line('must be the number 1'), 1, JSON.stringify(diagnostics))
  assert.equal(line('a secret is never written in the file itself'), 6, JSON.stringify(diagnostics))
})

test('An editor offers the settings that are valid at a place', async (t) => {
  const text = valid.replace('    rules:', '    \n    rules:')
  const document = await open(t, text)

  const upstream = await document.completion(after(text, '127.0.0.1:3000\n    '))
  for (const setting of ['headers', 'hosts', 'logout', 'response_timeout'])
    assert.ok(upstream.includes(setting), setting)
  assert.ok(!upstream.includes('issuer'), 'a setting of the provider is offered for an upstream')
})

test('An editor offers the valid values', async (t) => {
  const document = await open(t, valid)

  const offered = await document.completion(after(valid, 'access: '))

  assert.deepEqual([...offered].sort(), ['optional', 'public', 'signed_in'])
})

test('An editor describes a setting', async (t) => {
  const document = await open(t, valid)

  assert.match(await document.hover(after(valid, 'external_u')), /browsers reach/i)
})

test('Without the first line an editor does not find the schema', async (t) => {
  const document = await open(t, valid.replace(header, '').replace('rules:', 'rulse:'))

  assert.deepEqual(await document.diagnostics(), [])
})
