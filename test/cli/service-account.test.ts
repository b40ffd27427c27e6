import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readServiceAccountCall } from '../../src/cli/service-account.ts'
import { hasHash, parseScryptHash } from '../../src/core/scrypt-hash.ts'
import { recordingTerminal } from '../support/command-line.ts'
import { startCommand } from '../support/command.ts'

test('service-account prints a line for the file, and its secret beside it', async () => {
  const { terminal, said } = recordingTerminal()
  const call = readServiceAccountCall(['backup'])
  assert.ok('carryOut' in call)

  assert.equal(await call.carryOut(terminal), 0)

  const [, name = '', hash = ''] = /^([^:]+):(.+)\n$/.exec(said.out) ?? []
  const secret = /: ([\w-]{32})\n$/.exec(said.err)?.[1] ?? ''
  assert.equal(name, 'backup')
  assert.equal(await hasHash(secret, parseScryptHash(hash)), true)
})

test('service-account --stdin reads the secret, and prints the line alone', async (t) => {
  const command = startCommand(t, ['service-account', '--stdin', 'backup'], { keyboard: true })
  command.child.stdin?.end('a long enough secret\n')

  assert.equal(await command.ended, 0)
  assert.equal(command.err(), '')
  assert.equal(
    await hasHash('a long enough secret', parseScryptHash(command.out().trim().slice('backup:'.length))),
    true,
  )
})

for (const argv of [[], ['a:b'], ['backup', 'more'], ['x'.repeat(65)]])
  test(`service-account refuses ${JSON.stringify(argv).slice(0, 30)}`, () => {
    assert.ok('fault' in readServiceAccountCall(argv))
  })
