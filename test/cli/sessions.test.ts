import assert from 'node:assert/strict'
import { test } from 'node:test'
import { main } from '../../src/cli/main.ts'
import { readSessionsArguments } from '../../src/cli/sessions.ts'

const key = `-${'x'.repeat(23)}:${'y'.repeat(32)}`

for (const [argv, fault] of [
  [[], /wants list, show or end/],
  [['stop'], /no command "sessions stop"/],
  [['lst'], /no command "sessions lst"; did you mean "list"\?/],
  [['list', 'jane'], /"jane" is too much/],
  [['list', '--all'], /list takes/],
  [['list', '--sub', ''], /--sub is empty/],
  [['list', '--nonsense'], /--nonsense/],
  [['show'], /wants the key/],
  [['show', key, '--sub', 'jane'], /a key and --format only/],
  [['list', '--format', 'yaml'], /--format is one of text, json/],
  [['end'], /wants one of/],
  [['end', key, '--sub', 'jane'], /wants one of/],
  [['end', '--all', '--yes', '--sub', 'jane'], /wants one of/],
  [['end', '--all'], /wants --yes/],
  [['end', key, 'more'], /is too much/],
] as [string[], RegExp][])
  test(`a wrong call is refused: sessions ${argv.join(' ')}`, () => {
    const read = readSessionsArguments(argv)

    assert.match('fault' in read ? read.fault : '', fault)
  })

test('a key that begins with a dash is a key', () => {
  assert.deepEqual(readSessionsArguments(['end', '-c', 'a.yaml', key]), {
    task: { kind: 'end', selection: { key }, asJson: false },
    file: 'a.yaml',
  })
})

test('a wrong call says where to read how it is done, with exit code 2', async (t) => {
  const written: string[] = []
  t.mock.method(process.stderr, 'write', (text: string) => written.push(text) > 0)

  const exitCode = await main(['sessions', 'end', '--all'])

  assert.equal(exitCode, 2)
  assert.match(written.join(''), /wants --yes[^]+"gatehouse help sessions" says more\n$/)
})
