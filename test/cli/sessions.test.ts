import assert from 'node:assert/strict'
import { test } from 'node:test'
import { main } from '../../src/cli/main.ts'
import { readSessionsArguments, readSessionsCall } from '../../src/cli/sessions.ts'

const key = `-${'x'.repeat(23)}:${'y'.repeat(32)}`

for (const [argv, fault] of [
  [[], /needs list, show or end/],
  [['stop'], /unknown command "sessions stop"/],
  [['lst'], /unknown command "sessions lst"; did you mean "list"\?/],
  [['list', 'jane'], /unexpected argument: "jane"/],
  [['list', '--all'], /list takes/],
  [['list', '--sub', ''], /--sub is empty/],
  [['list', '--nonsense'], /--nonsense/],
  [['show'], /needs the key/],
  [['show', key, '--sub', 'jane'], /a key and --format only/],
  [['list', '--format', 'yaml'], /--format must be one of text, json/],
  [['end'], /needs one of/],
  [['end', key, '--sub', 'jane'], /needs one of/],
  [['end', '--all', '--yes', '--sub', 'jane'], /needs one of/],
  [['end', '--all'], /needs --yes/],
  [['end', key, 'more'], /unexpected argument/],
] as [string[], RegExp][])
  test(`An invalid call is rejected: sessions ${argv.join(' ')}`, () => {
    const read = readSessionsCall(argv)

    assert.match('fault' in read ? read.fault : '', fault)
  })

test('A session key may begin with a dash', () => {
  assert.deepEqual(readSessionsArguments(['end', '-c', 'a.yaml', key]), {
    task: { kind: 'end', selection: { key }, asJson: false },
    file: 'a.yaml',
  })
})

test('An invalid call names the help command and exits with 2', async (t) => {
  const written: string[] = []
  t.mock.method(process.stderr, 'write', (text: string) => written.push(text) > 0)

  const exitCode = await main(['sessions', 'end', '--all'])

  assert.equal(exitCode, 2)
  assert.match(written.join(''), /needs --yes[^]+For help, run: gatehouse help sessions\n$/)
})
